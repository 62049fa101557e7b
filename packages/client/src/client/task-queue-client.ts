import type {
  QueueAutoRetried,
  QueueCompacted,
  QueueSnapshot,
  QueueRepaired,
  QueueRepairRequest,
  QueueResultAcked,
  QueueResultOption,
  QueueResultAccepted,
  QueueResults,
  QueueTaskInput,
  QueueTaskOption,
  QueueTaskAccepted,
  QueueTaskResultInput,
  QueueTasks,
  QueueNext,
  QueueRecent,
  ResultAck,
  ResultNext,
  RetryStaleRequest,
  TaskQueueQuery,
} from "@a2a-relay/protocol";
import type { Call, CallOptions, HttpExchange, Path } from "../http/http-exchange.ts";

/** The first compaction of a large relay is slow. */
const COMPACT_MS_MAX = 10 * 60_000;

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
    return this.#post(["tasks"], "task_id", { body: task, repeat: "always" }, options);
  }

  /** Leases the oldest task. Not repeated after a lost reply: that would lease a second one. */
  next(request: QueueNext = {}, options: CallOptions = {}): Promise<QueueTaskOption> {
    const call = { body: request, repeat: "if_not_done", waitMs: request.wait_ms } as const;
    return this.#post(["tasks", "next"], "task", call, options);
  }

  /** Queued tasks of the caller, oldest first. */
  recent(query: QueueRecent = {}, options: CallOptions = {}): Promise<QueueTasks> {
    return this.#get(["tasks", "recent"], "tasks", query, options);
  }

  /** Ends a task. The same result again is answered as before. */
  respond(
    result: QueueTaskResultInput,
    caller: { readonly agent?: string } = {},
    options: CallOptions = {},
  ): Promise<QueueResultAccepted> {
    return this.#post(["results"], "task_id", { query: caller, body: result, repeat: "always" }, options);
  }

  /**
   * Takes the oldest result, which comes back unless it is acknowledged. With `ack: "now"` taking it acknowledges it,
   * and a lost reply loses it.
   */
  nextResult(request: ResultNext = {}, options: CallOptions = {}): Promise<QueueResultOption> {
    const repeat = request.ack === "now" ? "if_not_done" : "always";
    return this.#post(
      ["results", "next"],
      "result",
      { body: request, repeat, waitMs: request.wait_ms },
      options,
    );
  }

  ackResult(request: ResultAck, options: CallOptions = {}): Promise<QueueResultAcked> {
    return this.#post(["results", "ack"], "task_id", { body: request, repeat: "always" }, options);
  }

  /** Results for the caller that were not taken, oldest first. */
  recentResults(query: QueueRecent = {}, options: CallOptions = {}): Promise<QueueResults> {
    return this.#get(["results", "recent"], "results", query, options);
  }

  /** Queued and leased tasks, and results that were not taken. */
  queue(query: TaskQueueQuery = {}, options: CallOptions = {}): Promise<QueueSnapshot> {
    return this.#get(["queue"], "tasks", query, options);
  }

  /** Moves a stuck task. Not repeated after a lost reply: another worker may have leased it meanwhile. */
  repair(request: QueueRepairRequest, options: CallOptions = {}): Promise<QueueRepaired> {
    return this.#post(["repair"], "outcome", { body: request, repeat: "if_not_done" }, options);
  }

  /** Requeues stale idempotent tasks within bounds. Not repeated after a lost reply: it would move more. */
  retryStale(policy: RetryStaleRequest = {}, options: CallOptions = {}): Promise<QueueAutoRetried> {
    return this.#post(["retry-stale"], "report", { body: { policy }, repeat: "if_not_done" }, options);
  }

  /** Moves the messages of finished tasks whose results were taken to the archive. */
  compact(options: CallOptions = {}): Promise<QueueCompacted> {
    return this.#post(["compact"], "dropped", { repeat: "always", waitMs: COMPACT_MS_MAX }, options);
  }

  #get<T>(path: Path, member: string, query: object, options: CallOptions): Promise<T> {
    const call = { method: "GET", path: ["a2a", ...path], query, repeat: "always" } as const;
    return this.#exchange.json(call, member, options);
  }

  #post<T>(
    path: Path,
    member: string,
    call: Pick<Call, "body" | "query" | "repeat" | "waitMs">,
    options: CallOptions,
  ): Promise<T> {
    return this.#exchange.json({ method: "POST", path: ["a2a", ...path], ...call }, member, options);
  }
}
