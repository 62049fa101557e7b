import {
  type QueueErrorBody,
  QueueRepairRequestSchema,
  QueueRetryStaleSchema,
  QueueTaskResultSchema,
  QueueTaskSchema,
  QueueCallerSchema,
  QueueNextSchema,
  QueueRecentSchema,
  ResultAckSchema,
  RELAY_ERROR_CODES,
  type RelayError,
  ResultNextSchema,
  TaskQueueQuerySchema,
} from "@a2a-relay/protocol";
import type { TaskQueueService } from "../../core/queue/task-queue-service.ts";
import type { Call, Route, RouteFamily } from "../http/route.ts";

function toQueueErrorBody({ code, message, details }: RelayError): QueueErrorBody {
  return { kind: "error", message, code, ...(details === undefined ? {} : { details }) };
}

const TASK_QUEUE_FAMILY: RouteFamily = {
  owns: (path) => path.startsWith("/a2a/"),
  errorBody: toQueueErrorBody,
  errorName: "TaskQueueError",
  errorSchema: {
    type: "object",
    required: ["kind", "message", "code"],
    properties: {
      kind: { const: "error" },
      message: { type: "string", description: "What was wrong, with which value, and what to do." },
      code: { type: "string", enum: RELAY_ERROR_CODES },
      details: { type: "object", additionalProperties: true },
    },
  },
};

const shared = { tag: "Task queue", family: TASK_QUEUE_FAMILY } as const;

/** The relay as a task queue: tasks, leases and results as flat objects with a `kind`. */
export function taskQueueRoutes(queue: TaskQueueService): readonly Route[] {
  return [...taskRoutes(queue), ...resultRoutes(queue), ...operatorRoutes(queue)];
}

function taskRoutes(queue: TaskQueueService): readonly Route[] {
  return [
    {
      ...shared,
      method: "POST",
      path: "/a2a/tasks",
      summary: "Queue a task under an id of the sender's choice; the same task again is the same send",
      body: QueueTaskSchema,
      answers: { 200: "a2a_task_queued" },
      handle: async ({ principal, body }) => ({ body: await queue.sendTask(principal, body) }),
    },
    {
      ...shared,
      method: "GET",
      path: "/a2a/tasks/next",
      summary: "Lease the oldest task; POST does the same and is not repeated by anything in between",
      query: QueueNextSchema,
      waits: true,
      drains: true,
      answers: { 200: "a2a_task_opt, with its lease" },
      handle: async (call) => ({ body: await queue.nextTask(call.principal, call.query, call) }),
    },
    {
      ...shared,
      method: "POST",
      path: "/a2a/tasks/next",
      summary: "Lease the oldest task",
      query: QueueCallerSchema,
      body: QueueNextSchema,
      waits: true,
      answers: { 200: "a2a_task_opt, with its lease" },
      handle: async (call) => ({ body: await queue.nextTask(call.principal, withQuery(call), call) }),
    },
    {
      ...shared,
      method: "GET",
      path: "/a2a/tasks/recent",
      summary: "Queued tasks of the caller, oldest first; reading changes nothing",
      query: QueueRecentSchema,
      answers: { 200: "a2a_tasks" },
      handle: async ({ principal, query }) => ({ body: await queue.recentTasks(principal, query) }),
    },
  ];
}

function resultRoutes(queue: TaskQueueService): readonly Route[] {
  return [
    {
      ...shared,
      method: "POST",
      path: "/a2a/results",
      summary: "End a task with its result; the same result again is answered as before",
      query: QueueCallerSchema,
      body: QueueTaskResultSchema,
      answers: { 200: "a2a_result_posted" },
      handle: async ({ principal, query, body }) => ({
        body: await queue.postResult(principal, body, query),
      }),
    },
    {
      ...shared,
      method: "GET",
      path: "/a2a/results/next",
      summary: "Drain the oldest result; with ack=explicit it comes back unless it is acknowledged",
      query: ResultNextSchema,
      waits: true,
      drains: true,
      answers: { 200: "a2a_result_opt" },
      handle: async (call) => ({ body: await queue.nextResult(call.principal, call.query, "now", call) }),
    },
    {
      ...shared,
      method: "POST",
      path: "/a2a/results/next",
      summary: "Take the oldest result; it comes back unless it is acknowledged under its lease",
      query: QueueCallerSchema,
      body: ResultNextSchema,
      waits: true,
      answers: { 200: "a2a_result_opt, with its lease" },
      handle: async (call) => ({
        body: await queue.nextResult(call.principal, withQuery(call), "explicit", call),
      }),
    },
    {
      ...shared,
      method: "POST",
      path: "/a2a/results/ack",
      summary: "Acknowledge a result that was taken under a lease",
      query: QueueCallerSchema,
      body: ResultAckSchema,
      answers: { 200: "a2a_result_acked" },
      handle: async (call) => ({ body: await queue.ackResult(call.principal, withQuery(call)) }),
    },
    {
      ...shared,
      method: "GET",
      path: "/a2a/results/recent",
      summary: "Pending results for the caller, oldest first; reading changes nothing",
      query: QueueRecentSchema,
      answers: { 200: "a2a_results" },
      handle: async ({ principal, query }) => ({ body: await queue.recentResults(principal, query) }),
    },
  ];
}

function operatorRoutes(queue: TaskQueueService): readonly Route[] {
  return [
    {
      ...shared,
      method: "GET",
      path: "/a2a/queue",
      summary: "Queued tasks, leases and pending results that the caller takes part in",
      query: TaskQueueQuerySchema,
      answers: { 200: "a2a_queue, with the filters in force" },
      handle: async ({ principal, query }) => ({ body: await queue.queue(principal, query) }),
    },
    {
      ...shared,
      method: "POST",
      path: "/a2a/repair",
      summary: "Requeue a leased task with a duplicate-work posture, or end it with an error",
      body: QueueRepairRequestSchema,
      answers: { 200: "a2a_repaired" },
      handle: async ({ principal, body }) => ({ body: await queue.repair(principal, body) }),
    },
    {
      ...shared,
      method: "POST",
      path: "/a2a/retry-stale",
      summary: "Requeue stale idempotent tasks within bounds; without enabled=true it only reports",
      body: QueueRetryStaleSchema,
      answers: { 200: "a2a_auto_retried" },
      handle: async ({ principal, body }) => ({ body: await queue.retryStale(principal, body) }),
    },
    {
      ...shared,
      method: "POST",
      path: "/a2a/compact",
      summary: "Archive the messages of finished tasks whose results were taken, now",
      answers: { 200: "a2a_compacted" },
      handle: async ({ principal }) => ({ body: await queue.compact(principal) }),
    },
  ];
}

/** An operator may name the agent in the query or in the body. */
function withQuery({ query, body }: Call): unknown {
  const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
  if (body !== undefined && !isObject) return body;
  return { ...(query as object), ...body };
}
