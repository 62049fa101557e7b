import {
  operations,
  type QueueAutoRetried,
  type QueueCompacted,
  type QueueNext,
  type QueueRecent,
  type QueueRepaired,
  type QueueRepairRequest,
  type QueueResultAccepted,
  type QueueResultAcked,
  type QueueResultOption,
  type QueueResults,
  type QueueSnapshot,
  type QueueTaskAccepted,
  type QueueTaskInput,
  type QueueTaskOption,
  type QueueTaskResultInput,
  type QueueTasks,
  type ResultAck,
  type ResultNext,
  type RetryStaleRequest,
  type TaskQueueQuery,
} from "@a2a-relay/protocol";
import type { CallOptions, HttpExchange } from "../http/http-exchange.ts";

/**
 * The relay as a task queue: tasks, leases and results as flat objects. An operator names the agent it acts for with
 * `agent`; an agent's own key needs none.
 */
export class TaskQueueClient {
  readonly #exchange: HttpExchange;

  constructor(exchange: HttpExchange) {
    this.#exchange = exchange;
  }

  /** Queues a task under the sender's id, by which the relay recognises a repeated request. */
  send(task: QueueTaskInput, options: CallOptions = {}): Promise<QueueTaskAccepted> {
    return this.#exchange.call(operations.queueTasks.send, { body: task }, options);
  }

  /** Leases the oldest task. Not repeated after a lost reply: that would lease a second one. */
  next(request: QueueNext = {}, options: CallOptions = {}): Promise<QueueTaskOption> {
    return this.#exchange.call(operations.queueTasks.next, { body: request }, options);
  }

  /** Queued tasks of the caller, oldest first. */
  recent(query: QueueRecent = {}, options: CallOptions = {}): Promise<QueueTasks> {
    return this.#exchange.call(operations.queueTasks.recent, { query }, options);
  }

  /** Ends a task. The same result again is answered as before. */
  respond(
    result: QueueTaskResultInput,
    caller: { readonly agent?: string } = {},
    options: CallOptions = {},
  ): Promise<QueueResultAccepted> {
    return this.#exchange.call(operations.queueResults.post, { query: caller, body: result }, options);
  }

  /**
   * Takes the oldest result, which comes back unless it is acknowledged. With `ack: "now"` taking it acknowledges it,
   * and a lost reply loses it.
   */
  nextResult(request: ResultNext = {}, options: CallOptions = {}): Promise<QueueResultOption> {
    return this.#exchange.call(operations.queueResults.next, { body: request }, options);
  }

  ackResult(request: ResultAck, options: CallOptions = {}): Promise<QueueResultAcked> {
    return this.#exchange.call(operations.queueResults.acknowledge, { body: request }, options);
  }

  /** Results for the caller that were not taken, oldest first. */
  recentResults(query: QueueRecent = {}, options: CallOptions = {}): Promise<QueueResults> {
    return this.#exchange.call(operations.queueResults.recent, { query }, options);
  }

  /** Queued and leased tasks, and results that were not taken. */
  queue(query: TaskQueueQuery = {}, options: CallOptions = {}): Promise<QueueSnapshot> {
    return this.#exchange.call(operations.queue.get, { query }, options);
  }

  /** Moves a stuck task. Not repeated after a lost reply: another worker may have leased it meanwhile. */
  repair(request: QueueRepairRequest, options: CallOptions = {}): Promise<QueueRepaired> {
    return this.#exchange.call(operations.queue.repair, { body: request }, options);
  }

  /** Requeues stale idempotent tasks within bounds. Not repeated after a lost reply: it would move more. */
  retryStale(policy: RetryStaleRequest = {}, options: CallOptions = {}): Promise<QueueAutoRetried> {
    return this.#exchange.call(operations.queue.retryStale, { body: { policy } }, options);
  }

  /** Moves the messages of finished tasks whose results were taken to the archive. */
  compact(options: CallOptions = {}): Promise<QueueCompacted> {
    return this.#exchange.call(operations.queue.compact, {}, options);
  }
}
