import {
  type MailboxSocketQuery,
  MailboxSocketQuerySchema,
  type MailboxStreamQuery,
  operations,
  type TaskEventsQuery,
} from "@a2a-relay/protocol";
import type { MailboxPage } from "../../core/mailboxes/mailbox-stream.ts";
import { parserOf } from "../../core/mechanisms/schema-check.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import type { TaskEventsPage } from "../../core/tasks/task-events.ts";
import { type EventStream, eventStream, journalStream } from "../http/event-stream.ts";
import { resumed, route, type Route, socketRoute, type SocketRoute } from "../http/route.ts";
import { HeartbeatTimer } from "./heartbeat-timer.ts";
import { MailboxSocket } from "./mailbox-socket.ts";
import type { SocketCore } from "./socket-verbs.ts";

const parseSocketQuery = parserOf(MailboxSocketQuerySchema, "query");

/** What can be followed as server-sent events, besides the journal. */
export function streamRoutes({ mailboxes, tasks }: Pick<RelayCore, "mailboxes" | "tasks">): readonly Route[] {
  return [
    route(operations.mailboxes.stream, async (call) => {
      const query = resumed(call);
      const pages = await mailboxes.follow(call.principal, call.params.agent_id, query, call);
      const isNotice = (query as MailboxStreamQuery).notice === true;
      return { events: mailboxStream(pages, isNotice ? "notice" : "message") };
    }),
    route(operations.tasks.events, async (call) => {
      const query = resumed(call);
      // Without a stream the route does not wait.
      const options = call.wantsEvents ? call : {};
      const pages = await tasks.follow(call.principal, call.params.id, query, options);
      return call.wantsEvents
        ? { events: journalStream("task", pages) }
        : { body: await firstOf(pages, query) };
    }),
  ];
}

function mailboxStream(pages: AsyncIterable<MailboxPage>, event: "message" | "notice"): EventStream {
  return eventStream("mailbox", pages, ({ items }) =>
    items.map(({ cursor, item }) => ({ id: cursor, event, data: JSON.stringify(item) })),
  );
}

/** The first page; of a finished task there may be none. */
async function firstOf(pages: AsyncIterable<TaskEventsPage>, query: unknown): Promise<TaskEventsPage> {
  for await (const page of pages) return page;
  return { events: [], cursor: (query as TaskEventsQuery).since ?? "0" };
}

/** A mailbox over a socket. */
export function socketRoutes(
  core: SocketCore,
  { heartbeatMs }: { readonly heartbeatMs: number },
): readonly SocketRoute[] {
  const heartbeats = new HeartbeatTimer(heartbeatMs);
  return [
    socketRoute(operations.mailboxes.socket, async (call) => {
      const { quiet = false, ...query }: MailboxSocketQuery = parseSocketQuery(call.query);
      const { principal, signal: stopping } = call;
      const agent = call.params.agent_id;
      const ended = new AbortController();
      stopping.addEventListener("abort", () => ended.abort(), { once: true });
      if (quiet) await core.mailboxes.authorizeReader(principal, agent);
      const pages = quiet ? undefined : await core.mailboxes.follow(principal, agent, query, ended);
      const { since = "0", notice: isNotice = false } = query;
      const session = { principal, agent, pages, isNotice, since, ended, stopping };
      return {
        run: (socket, host) => new MailboxSocket(core, session, socket, { ...host, heartbeats }).run(),
        [Symbol.dispose]: () => ended.abort(),
      };
    }),
  ];
}
