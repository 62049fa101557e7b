import {
  isTerminal,
  LIMITS,
  type MailboxItem,
  type Message,
  type Receipt,
  RelayError,
  TASK_STATES,
  type TaskState,
  type TaskView,
} from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { onAbort, pause } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { parseInteger } from "../http/relay-client-options.ts";
import { isAway } from "../http/retry.ts";

/** The result of a requested task, or its question. */
export interface TaskOutcome {
  readonly state: TaskState;
  /** True for `completed`; otherwise `text` says why not. */
  readonly ok: boolean;
  /** The answer, the reason, or the question. */
  readonly text: string;
  /** The message that brought the answer, if one did. */
  readonly message: Message | undefined;
  readonly task: TaskView;
}

export interface ResultOptions extends CallOptions {
  /** Default 300,000: five minutes. The task continues after that; its result comes as a message. */
  readonly timeoutMs?: number | undefined;
}

const RESULT_MS_DEFAULT = 300_000;
const RESULT_MS_RANGE = { min: 0, max: LIMITS.messageTtlMsMax };
const POLL_MS_FIRST = 100;
const POLL_MS_MAX = 2_000;
/** Remembered ids of requested tasks. */
const ASKED_MAX = 10_000;

/** The tasks that this process waits for, so that an arriving message can wake the caller. */
export class AwaitedResults {
  readonly #wakers = new Map<string, Set<() => void>>();
  readonly #asked = new Set<string>();

  /** A task that this process requested; its caller can still read the result, so its messages may be acknowledged. */
  remember(taskId: string): void {
    this.#asked.add(taskId);
    const [oldest] = this.#asked;
    if (this.#asked.size > ASKED_MAX && oldest !== undefined) this.#asked.delete(oldest);
  }

  /** Whether the message is about a task that this process requested. */
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

  /** Wakes the callers that wait for this message. False when there are none. */
  accept(item: MailboxItem): boolean {
    const wakers = this.#wakers.get(item.task_id ?? "");
    if (wakers === undefined || !isNews(item.message)) return false;
    for (const wake of wakers) wake();
    return true;
  }
}

/** A request that was sent, and access to its result. */
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
   * Waits until the task is finished or asks for something (`input-required`, `auth-required`): answer by sending a
   * message with its `task_id`, then wait again. Polls the task, and reads it at once when a message about it arrives
   * at the running agent; that message does not go to `onMessage`.
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
        // Before reading: a message that arrives between the read and the pause ends the pause.
        nap = new AbortController();
        const outcome = await this.#read(signal);
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

  async #read(signal: AbortSignal | undefined): Promise<TaskOutcome | undefined> {
    try {
      const task = await this.#client.task(this.taskId, { signal });
      if (!isTerminal(task.state) && !isQuestion(task.state)) return undefined;
      const message = await this.#resultMessage(task, signal);
      const text = message?.body ?? task.status_text ?? "";
      return { state: task.state, ok: task.state === "completed", text, message, task };
    } catch (reason) {
      // A relay that restarts still knows the task afterwards.
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
