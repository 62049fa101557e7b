import {
  EventsQuerySchema,
  QueueQuerySchema,
  RepairRequestSchema,
  RetryStaleRequestSchema,
  ThreadsQuerySchema,
} from "@a2a-relay/protocol";
import type { JournalService } from "../../core/journal/journal-service.ts";
import type { RepairService } from "../../core/mailboxes/repair-service.ts";
import { journalStream } from "./event-stream.ts";
import { param, resumed, type Route } from "./route.ts";

const tag = "Operators";

/** What operators read, and the repairs that only they may order. */
export function operatorRoutes(journal: JournalService, repairs: RepairService): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/threads",
      tag,
      summary: "Threads by their newest message",
      query: ThreadsQuerySchema,
      answers: { 200: "Threads, and a cursor when there are more" },
      handle: async ({ principal, query }) => ({ body: await journal.threads(principal, query) }),
    },
    {
      method: "GET",
      path: "/threads/{id}",
      tag,
      summary: "All messages of a thread, in order",
      answers: { 200: "The thread" },
      handle: async (call) => ({ body: await journal.thread(call.principal, param(call, "id")) }),
    },
    {
      method: "GET",
      path: "/events",
      tag,
      summary: "The journal after a cursor; a filtered page reads a bounded number of events",
      query: EventsQuerySchema,
      waits: true,
      streams: "on request",
      answers: { 200: "Events, the cursor behind them, and whether there is more" },
      handle: async (call) =>
        call.wantsEvents
          ? { events: journalStream("events", await journal.follow(call.principal, resumed(call), call)) }
          : { body: await journal.events(call.principal, call.query, call) },
    },
    {
      method: "GET",
      path: "/queue",
      tag,
      summary: "Deliveries by state; reading changes nothing",
      query: QueueQuerySchema,
      answers: { 200: "Entries and totals" },
      handle: async ({ principal, query }) => ({ body: await repairs.queue(principal, query) }),
    },
    {
      method: "POST",
      path: "/repair",
      tag,
      summary: "Requeue leased work with a duplicate-work posture, or end it with an error",
      body: RepairRequestSchema,
      answers: { 200: "What was done" },
      handle: async ({ principal, body }) => ({ body: await repairs.repair(principal, body) }),
    },
    {
      method: "POST",
      path: "/repair/retry-stale",
      tag,
      summary: "Requeue stale idempotent leases within bounds; without enabled=true it only reports",
      body: RetryStaleRequestSchema,
      answers: { 200: "What was requeued, and what was left and why" },
      handle: async ({ principal, body }) => ({ body: await repairs.retryStale(principal, body) }),
    },
    {
      method: "GET",
      path: "/journal/verify",
      tag,
      summary: "Check the whole hash chain, and every kept message against it",
      answers: { 200: "ok, or the first problem found" },
      handle: async ({ principal }) => ({ body: await journal.verify(principal) }),
    },
  ];
}
