import {
  type MailboxStreamQuery,
  MailboxStreamQuerySchema,
  type TaskEventsQuery,
  TaskEventsQuerySchema,
} from "@a2a-relay/protocol";
import type { RelayCore } from "../../core/relay-core.ts";
import type { TaskEventsPage } from "../../core/tasks/task-events.ts";
import { param, resumed, type Route } from "../http/route.ts";
import { factStream, mailboxStream } from "./event-stream.ts";

/** What can be followed as server-sent events. The journal can be too, where it is read. */
export function streamRoutes({ mailboxes, tasks }: Pick<RelayCore, "mailboxes" | "tasks">): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/mailbox/{agent_id}/stream",
      tag: "Mailbox",
      summary: "MailboxMessage as server-sent events, the moment it is there",
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
        // Whoever wants no stream waits for nothing.
        const waiting = call.wantsEvents ? call : {};
        const pages = await tasks.follow(call.principal, param(call, "id"), query, waiting);
        return call.wantsEvents
          ? { events: factStream("task", pages) }
          : { body: await firstOf(pages, query) };
      },
    },
  ];
}

/** Whoever does not follow the task is shown what there is; of a finished one that may be nothing. */
async function firstOf(pages: AsyncIterable<TaskEventsPage>, query: unknown): Promise<TaskEventsPage> {
  for await (const page of pages) return page;
  return { events: [], cursor: (query as TaskEventsQuery).since ?? "0" };
}
