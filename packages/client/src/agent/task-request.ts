import { isTerminal, LIMITS, type MailboxItem, type Message, type Receipt, RelayError, TASK_STATES, type TaskState, type TaskView } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { onAbort, pause } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { parseInteger } from "../http/relay-client-options.ts";
import { isAway } from "../http/retry.ts";

/** How a task that was asked for stands once there is something to say about it. */
export interface TaskOutcome {
  readonly state: TaskState;
  /** True for `completed`; what is not is told in `text`. */
  readonly ok: boolean;
  /** The answer, the reason, or the question. */
  readonly text: string;
  /** The message that brought the answer, if one did. */
  readonly message: Message | undefined;
  readonly task: TaskView;
}

export interface ResultOptions extends CallOptions {
  /** Default 300,000: five minutes. The task goes on when the time is over; its result comes by mail. */
  readonly timeoutMs?: number | undefined;
}

const RESULT_MS_DEFAULT = 300_000;
const RESULT_MS_RANGE = { min: 0, max: LIMITS.messageTtlMsMax };
const POLL_MS_FIRST = 100;
const POLL_MS_MAX = 2_000;
/** Task ids an agent remembers to have asked for. */
const ASKED_MAX = 10_000;

/** Who waits for which task in this process, so that arriving mail can wake them. */
export class AwaitedResults {
  readonly #wakers = new Map<string, Set<() => void>>();
  readonly #asked = new Set<string>();

  /** A task that this process asked for: whoever asked can still ask for its result, so no news are lost. */
  remember(taskId: string): void {
    this.#asked.add(taskId);
    const [oldest] = this.#asked;
    if (this.#asked.size > ASKED_MAX && oldest !== undefined) this.#asked.delete(oldest);
  }

  /** Whether the mail is news of a task that this process asked for. */
  isAsked(item: MailboxItem): boolean {
    return this.#asked.has(item.task_id ?? "") && isNews(item.message);
  }

  watch(taskId: string, wake: () => void): () => void {
    const wakers = this.#wakers.get(taskId) ?? new Set();
    this.#wakers.set(taskId, wakers.add(wake));
    return () => {
      wakers.delete(wake);
      if (wakers.size === 0 && this.#wakers.get(taskId) === wakers) this.#wakers.delete(taskId);
    };
  }

  /** Wakes those who wait for the news in this mail. False when nobody does, or when it is no news. */
  accept(item: MailboxItem): boolean {
    const wakers = this.#wakers.get(item.task_id ?? "");
    if (wakers === undefined || !isNews(item.message)) return false;
    for (const wake of wakers) wake();
    return true;
  }
}

/** A request that was sent, and the way to its answer. */
export class TaskRequest {
  readonly receipt: Receipt;
  readonly #client: RelayClient;
  readonly #awaited: AwaitedResults;

  constructor(receipt: Receipt, client: RelayClient, awaited: AwaitedResults) {
    this.receipt = receipt;
    this.#client = client;
    this.#awaited = awaited;
  }

  get taskId(): string {
    const { task_id: taskId, message_id: messageId } = this.receipt;
    if (taskId !== undefined) return taskId;
    throw new RelayError("internal", `the relay made no task of request ${messageId}`);
  }

  /**
   * Waits until the task is finished or asks for something (`input-required`, `auth-required`): answer by
   * sending a message with its `task_id`, then wait again. It looks at the task now and then, and at once
   * when mail about it arrives at the running agent; that mail then does not go to `onMessage`.
   */
  async result(options: ResultOptions = {}): Promise<TaskOutcome> {
    const { signal } = options;
    const timeoutMs = parseInteger("timeoutMs", options.timeoutMs ?? RESULT_MS_DEFAULT, RESULT_MS_RANGE);
    const endMs = Date.now() + timeoutMs;
    let nap = new AbortController();
    const wake = (): void => nap.abort();
    const unwatch = this.#awaited.watch(this.taskId, wake);
    const unsubscribe = onAbort(signal, wake);
    try {
      for (let pollMs = POLL_MS_FIRST; ; pollMs = Math.min(POLL_MS_MAX, pollMs * 1.5)) {
        // Before looking: news that come between the look and the nap cut the nap short.
        nap = new AbortController();
        const outcome = await this.#look(signal);
        if (outcome !== undefined) return outcome;
        const leftMs = endMs - Date.now();
        if (leftMs <= 0) throw this.#overdue(timeoutMs);
        await pause(Math.min(pollMs, leftMs), nap).catch(() => undefined);
      }
    } finally {
      unwatch();
      unsubscribe();
    }
  }

  async #look(signal: AbortSignal | undefined): Promise<TaskOutcome | undefined> {
    try {
      const task = await this.#client.task(this.taskId, { signal });
      if (!isTerminal(task.state) && !isQuestion(task.state)) return undefined;
      const message = await this.#resultMessage(task, signal);
      const text = message?.body ?? task.status_text ?? "";
      return { state: task.state, ok: task.state === "completed", text, message, task };
    } catch (reason) {
      // A relay that restarts meanwhile still knows the task afterwards.
      if (isAway(reason)) return undefined;
      throw reason;
    }
  }

  async #resultMessage(task: TaskView, signal: AbortSignal | undefined): Promise<Message | undefined> {
    if (task.result_message_id === undefined) return undefined;
    return (await this.#client.message(task.result_message_id, { signal })).message;
  }

  #overdue(timeoutMs: number): RelayError {
    return new RelayError(
      "unavailable",
      `task ${this.taskId} had no result within ${timeoutMs} ms; it goes on, so wait again, or cancel it`,
      { details: { task_id: this.taskId } },
    );
  }
}

function isQuestion(state: TaskState): boolean {
  return state === "input-required" || state === "auth-required";
}

function isNews(message: Message): boolean {
  const state = TASK_STATES.find((known) => known === message["task_state"]);
  return message.type === "reply" || (state !== undefined && (isTerminal(state) || isQuestion(state)));
}
