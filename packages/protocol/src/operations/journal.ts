import {
  EventsResponseSchema,
  EventViewSchema,
  ThreadResponseSchema,
  ThreadsResponseSchema,
  VerifyResponseSchema,
} from "../wire/answers.ts";
import {
  QueueQuerySchema,
  QueueResponseSchema,
  RepairRequestSchema,
  RepairResponseSchema,
  RetryStaleRequestSchema,
  RetryStaleResponseSchema,
} from "../wire/repair.ts";
import { EventsQuerySchema, ThreadsQuerySchema } from "../wire/requests.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries } from "./operation.ts";
import { AGENT_ERRORS, SLOW_MS_MAX, WORK_ERRORS } from "./shared.ts";

const tag = "Operators";
const { agent, message, thread } = EXAMPLE_IDS;

export const threads = {
  list: {
    method: "GET",
    path: "/threads",
    tag,
    summary: "Threads by their newest message",
    verbs: ["threads.read"],
    query: ThreadsQuerySchema,
    answers: {
      200: { description: "Threads, and a cursor when there are more", schema: ThreadsResponseSchema },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    paging: { items: "threads", next: "cursor", query: "before" },
    example: { query: { agent, limit: 10 } },
  },
  get: {
    method: "GET",
    path: "/threads/{id}",
    tag,
    summary: "All messages of a thread, in order",
    verbs: ["threads.read"],
    answers: { 200: { description: "The thread", schema: ThreadResponseSchema } },
    errors: ["not_found"],
    repeat: "always",
    example: { params: { id: thread } },
  },
} as const satisfies OperationEntries;

export const journal = {
  events: {
    method: "GET",
    path: "/events",
    tag,
    summary: "The journal after a cursor; a filtered page reads a bounded number of events",
    verbs: ["events.read"],
    query: EventsQuerySchema,
    waits: true,
    streams: "on request",
    event: EventViewSchema,
    answers: {
      200: {
        description: "Events, the cursor behind them, and whether there is more",
        schema: EventsResponseSchema,
      },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    paging: { items: "events", next: "cursor", query: "since" },
    example: { query: { type: "message.accepted", limit: 10 } },
  },
  verify: {
    method: "GET",
    path: "/journal/verify",
    tag,
    summary: "Check the whole hash chain, and every kept message against it",
    verbs: ["journal.verify"],
    durationMsMax: SLOW_MS_MAX,
    answers: { 200: { description: "ok, or the first problem found", schema: VerifyResponseSchema } },
    errors: [],
    repeat: "always",
    example: {},
  },
} as const satisfies OperationEntries;

export const repairs = {
  queue: {
    method: "GET",
    path: "/queue",
    tag,
    summary: "Deliveries by state; reading changes nothing",
    verbs: ["queue.read"],
    query: QueueQuerySchema,
    answers: { 200: { description: "Entries and totals", schema: QueueResponseSchema } },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { query: { agent, state: "leased" } },
  },
  repair: {
    method: "POST",
    path: "/repair",
    tag,
    summary: "Requeue leased work with a duplicate-work posture, or end it with an error",
    verbs: ["repair.write"],
    body: RepairRequestSchema,
    answers: { 200: { description: "What was done", schema: RepairResponseSchema } },
    errors: WORK_ERRORS,
    // Another worker may have leased the message meanwhile, and a second requeue would end that lease.
    repeat: "if_not_done",
    example: {
      body: {
        message_id: message,
        reason: "its worker crashed",
        command: { action: "requeue", duplicate_risk: "operator_accepted" },
      },
    },
  },
  retryStale: {
    method: "POST",
    path: "/repair/retry-stale",
    tag,
    summary: "Requeue stale idempotent leases within bounds; without enabled=true it only reports",
    verbs: ["repair.write"],
    body: RetryStaleRequestSchema,
    answers: {
      200: { description: "What was requeued, and what was left and why", schema: RetryStaleResponseSchema },
    },
    errors: [],
    // A second run would move more.
    repeat: "if_not_done",
    example: { body: { enabled: true, min_lease_age_ms: 300_000 } },
  },
} as const satisfies OperationEntries;
