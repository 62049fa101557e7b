import {
  type QueueRepairOutcome,
  type QueueRepairRequest,
  type QueueTask,
  type QueueTaskInput,
  type QueueTaskEntry,
  type QueueTaskResult,
  type QueueTaskResultInput,
  LIMITS,
  type QueueLease,
  RelayError,
} from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import type { AgentName } from "./queue-agents.ts";
import type { TaskQueueService } from "./task-queue-service.ts";

/** A leased task. Pass the `lease_id` with its result. */
export interface LeasedTask extends QueueTask {
  readonly lease: QueueLease;
}

/** The task queue for a program that embeds the relay, with the rights of an operator. */
export interface Mailbox {
  sendTask(task: QueueTaskInput): Promise<void>;
  /** Waits for the oldest task of all agents and leases it. Rejects with the signal's reason. */
  recvTask(options?: WaitOptions): Promise<LeasedTask>;
  /** Leases the recipient's oldest task, if there is one now. */
  tryRecvTaskFor(recipient: AgentName): Promise<LeasedTask | undefined>;
  /** Queued tasks, oldest first. */
  recentTasks(limit: number): Promise<readonly QueueTask[]>;
  /** Queued tasks, then leased ones. */
  taskQueue(limit: number): Promise<readonly QueueTaskEntry[]>;
  repairTask(request: QueueRepairRequest): Promise<QueueRepairOutcome>;

  /** Ends a task on behalf of its assignee. */
  sendResult(result: QueueTaskResultInput): Promise<void>;
  /** Waits for the oldest result of all agents and acknowledges it. Rejects with the signal's reason. */
  recvResult(options?: WaitOptions): Promise<QueueTaskResult>;
  /** Acknowledges and returns the oldest result for this requester, if there is one now. */
  tryRecvResultFor(peer: AgentName): Promise<QueueTaskResult | undefined>;
  /** Unacknowledged results, oldest first. */
  recentResults(limit: number): Promise<readonly QueueTaskResult[]>;
}

/** Calls the task-queue service without a wire. */
export class InProcessQueue implements Mailbox {
  readonly #queue: TaskQueueService;
  readonly #principal: Principal;
  readonly #stopping: AbortSignal;

  constructor(queue: TaskQueueService, principal: Principal, stopping: AbortSignal) {
    this.#queue = queue;
    this.#principal = principal;
    this.#stopping = stopping;
  }

  async sendTask(task: QueueTaskInput): Promise<void> {
    await this.#queue.sendTask(this.#principal, task);
  }

  async recvTask({ signal }: WaitOptions = {}): Promise<LeasedTask> {
    return this.#untilTaken(signal, (options) => this.#takeTask({ wait_ms: LIMITS.waitMsMax }, options));
  }

  async tryRecvTaskFor(recipient: AgentName): Promise<LeasedTask | undefined> {
    return this.#takeTask({ agent: await this.#queue.resolve(this.#principal, recipient) }, {});
  }

  async recentTasks(limit: number): Promise<readonly QueueTask[]> {
    return (await this.#queue.recentTasks(this.#principal, { limit })).tasks;
  }

  async taskQueue(limit: number): Promise<readonly QueueTaskEntry[]> {
    return (await this.#queue.queue(this.#principal, { limit })).tasks;
  }

  async repairTask(request: QueueRepairRequest): Promise<QueueRepairOutcome> {
    return (await this.#queue.repair(this.#principal, request)).outcome;
  }

  async sendResult(result: QueueTaskResultInput): Promise<void> {
    await this.#queue.postResult(this.#principal, result);
  }

  async recvResult({ signal }: WaitOptions = {}): Promise<QueueTaskResult> {
    return this.#untilTaken(signal, (options) => this.#takeResult({ wait_ms: LIMITS.waitMsMax }, options));
  }

  async tryRecvResultFor(peer: AgentName): Promise<QueueTaskResult | undefined> {
    return this.#takeResult({ agent: await this.#queue.resolve(this.#principal, peer) }, {});
  }

  async recentResults(limit: number): Promise<readonly QueueTaskResult[]> {
    return (await this.#queue.recentResults(this.#principal, { limit })).results;
  }

  async #takeTask(request: object, options: WaitOptions): Promise<LeasedTask | undefined> {
    const { task, lease } = await this.#queue.nextTask(this.#principal, request, options);
    return task === null || lease === undefined ? undefined : { ...task, lease };
  }

  async #takeResult(request: object, options: WaitOptions): Promise<QueueTaskResult | undefined> {
    const { result } = await this.#queue.nextResult(this.#principal, request, "now", options);
    return result ?? undefined;
  }

  /** Returns what was taken even if the caller aborts at that moment: it would be lost otherwise. */
  async #untilTaken<Taken>(
    signal: AbortSignal | undefined,
    take: (options: WaitOptions) => Promise<Taken | undefined>,
  ): Promise<Taken> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    const signals = [this.#stopping, ...(signal === undefined ? [] : [signal])];
    for (const each of signals) each.addEventListener("abort", end);
    try {
      for (;;) {
        signal?.throwIfAborted();
        if (this.#stopping.aborted) throw new RelayError("unavailable", "the relay is stopping");
        const taken = await take({ signal: ending.signal });
        if (taken !== undefined) return taken;
      }
    } finally {
      for (const each of signals) each.removeEventListener("abort", end);
    }
  }
}
