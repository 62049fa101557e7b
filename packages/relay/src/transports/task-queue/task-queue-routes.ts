import {
  type AnswerOf,
  type Operation,
  operations,
  type QueueErrorBody,
  QueueErrorBodySchema,
  type RelayError,
} from "@a2a-relay/protocol";
import type { TaskQueueService } from "../../core/queue/task-queue-service.ts";
import { type Answer, type Call, route, type Route, type RouteFamily } from "../http/route.ts";

function toQueueErrorBody({ code, message, details }: RelayError): QueueErrorBody {
  return { kind: "error", message, code, ...(details === undefined ? {} : { details }) };
}

const TASK_QUEUE_FAMILY: RouteFamily = {
  owns: (path) => path.startsWith("/a2a/"),
  errorBody: toQueueErrorBody,
  errorSchema: QueueErrorBodySchema,
};

/** The relay as a task queue: tasks, leases and results as flat objects with a `kind`. */
export function taskQueueRoutes(queue: TaskQueueService): readonly Route[] {
  const { queueTasks, queueResults } = operations;
  return [
    queueRoute(queueTasks.send, ({ principal, body }) => queue.sendTask(principal, body)),
    queueRoute(queueTasks.take, (call) => queue.nextTask(call.principal, call.query, call)),
    queueRoute(queueTasks.next, (call) => queue.nextTask(call.principal, withQuery(call), call)),
    queueRoute(queueTasks.recent, ({ principal, query }) => queue.recentTasks(principal, query)),
    queueRoute(queueResults.post, ({ principal, query, body }) => queue.postResult(principal, body, query)),
    queueRoute(queueResults.take, (call) => queue.nextResult(call.principal, call.query, "now", call)),
    queueRoute(queueResults.next, (call) =>
      queue.nextResult(call.principal, withQuery(call), "explicit", call),
    ),
    queueRoute(queueResults.acknowledge, (call) => queue.ackResult(call.principal, withQuery(call))),
    queueRoute(queueResults.recent, ({ principal, query }) => queue.recentResults(principal, query)),
    queueRoute(operations.queue.get, ({ principal, query }) => queue.queue(principal, query)),
    queueRoute(operations.queue.repair, ({ principal, body }) => queue.repair(principal, body)),
    queueRoute(operations.queue.retryStale, ({ principal, body }) => queue.retryStale(principal, body)),
    queueRoute(operations.queue.compact, ({ principal }) => queue.compact(principal)),
  ];
}

function queueRoute<Entry extends Operation>(
  operation: Entry,
  answer: (call: Call) => Promise<AnswerOf<Entry>>,
): Route {
  const handle = async (call: Call): Promise<Answer<AnswerOf<Entry>>> => ({ body: await answer(call) });
  return route(operation, handle, TASK_QUEUE_FAMILY);
}

/** An operator may name the agent in the query or in the body. */
function withQuery({ query, body }: Call): unknown {
  const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
  if (body !== undefined && !isObject) return body;
  return { ...(query as object), ...body };
}
