import {
  type MailboxSocketQuery,
  MailboxSocketQuerySchema,
  type MailboxStreamQuery,
  MailboxStreamQuerySchema,
  type TaskEventsQuery,
  TaskEventsQuerySchema,
} from "@a2a-relay/protocol";
import type { MailboxPage } from "../../core/mailboxes/mailbox-stream.ts";
import { parserOf } from "../../core/mechanisms/schema-check.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import type { TaskEventsPage } from "../../core/tasks/task-events.ts";
import { type EventStream, eventStream, journalStream } from "../http/event-stream.ts";
import { param, resumed, type Route, type SocketRoute } from "../http/route.ts";
import { HeartbeatTimer } from "./heartbeat-timer.ts";
import { MailboxSocket } from "./mailbox-socket.ts";
import type { SocketCore } from "./socket-verbs.ts";

const parseSocketQuery = parserOf(MailboxSocketQuerySchema, "query");

/** What can be followed as server-sent events, besides the journal. */
export function streamRoutes({ mailboxes, tasks }: Pick<RelayCore, "mailboxes" | "tasks">): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/mailbox/{agent_id}/stream",
      tag: "Mailbox",
      summary: "Messages as server-sent events, as soon as they arrive",
      query: MailboxStreamQuerySchema,
      waits: true,
      streams: "always",
      answers: { 200: "Events named message, or notice; the id of each is the cursor behind it" },
      handle: async (call) => {
        const query = resumed(call);
        const pages = await mailboxes.follow(call.principal, param(call, "agent_id"), query, call);
        const isNotice = (query as MailboxStreamQuery).notice === true;
        return { events: mailboxStream(pages, isNotice ? "notice" : "message") };
      },
    },
    {
      method: "GET",
      path: "/tasks/{id}/events",
      tag: "Tasks",
      summary: "What happens to the task, to its end",
      query: TaskEventsQuerySchema,
      waits: true,
      streams: "on request",
      answers: {
        200: "Events, and the cursor behind them",
        204: "As a stream: nothing comes after that cursor, because the task is finished or was handed on",
      },
      handle: async (call) => {
        const query = resumed(call);
        // Without a stream the route does not wait.
        const options = call.wantsEvents ? call : {};
        const pages = await tasks.follow(call.principal, param(call, "id"), query, options);
        return call.wantsEvents
          ? { events: journalStream("task", pages) }
          : { body: await firstOf(pages, query) };
      },
    },
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
    {
      method: "GET",
      path: "/mailbox/{agent_id}/ws",
      tag: "Mailbox",
      summary: "A WebSocket: messages as soon as they arrive, and sending, leasing and acknowledging over it",
      query: MailboxSocketQuerySchema,
      waits: true,
      answers: { 101: "The socket; every frame is one JSON text" },
      socket: true,
      accept: async (call) => {
        const { quiet = false, ...query }: MailboxSocketQuery = parseSocketQuery(call.query);
        const { principal, signal: stopping } = call;
        const agent = param(call, "agent_id");
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
      },
    },
  ];
}
