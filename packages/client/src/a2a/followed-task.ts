import { A2aError, type A2aTask, RelayError } from "@a2a-relay/protocol";
import { pause } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { isAwayCode, retryDelayMs, type RetryDelays } from "../http/retry.ts";
import { invalidAgentResponse } from "./agent-answer.ts";
import type { A2aOpenOptions } from "./agent-binding.ts";
import {
  type A2aEventSource,
  type A2aStreamEvent,
  isSettledState,
  isTerminalState,
  stateOf,
  taskIdOf,
} from "./stream-event.ts";

export interface FollowedTaskParts {
  /** Opens the first source of events. */
  readonly begin: () => Promise<A2aEventSource>;
  /** Used when the agent does not support `begin`. */
  readonly fallBack: () => Promise<A2aEventSource>;
  /** Resumes the task. */
  readonly subscribe: (taskId: string, options: A2aOpenOptions) => Promise<A2aEventSource>;
  /** Polls the task, for agents without subscriptions. */
  readonly poll: (taskId: string) => A2aEventSource;
  readonly retries: number;
  readonly delays: RetryDelays;
  /** Ends when the agent waits for input: right for the sender, not for an observer. */
  readonly endsInterrupted: boolean;
  readonly taskId?: string | undefined;
  readonly lastEventId?: string | undefined;
}

/** The events of a task until it is settled, over any number of connections. */
export class FollowedTask {
  readonly #parts: FollowedTaskParts;
  readonly #options: CallOptions;
  #source: A2aEventSource | undefined;
  #taskId: string | undefined;
  #lastEventId: string | undefined;
  #hasTask: boolean;
  #isSettled = false;
  /** Connections since the last new event. */
  #failures = 0;
  /** This connection has brought no event yet. */
  #isFresh = true;
  /** This connection has brought nothing new yet. */
  #isIdle = true;
  #isResumed = false;
  /** Polling, or the fallback of the first request, is in use. */
  #hasFallenBack = false;

  constructor(parts: FollowedTaskParts, options: CallOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#taskId = parts.taskId;
    this.#hasTask = parts.taskId !== undefined;
    this.#lastEventId = parts.lastEventId;
  }

  async *events(): AsyncGenerator<A2aStreamEvent, void, void> {
    try {
      for (;;) {
        const event = await this.#next();
        if (event === undefined) return;
        yield event;
        if (this.#isOver(event)) return;
      }
    } finally {
      this.#source?.cancel();
    }
  }

  /** Undefined once the task is settled and the agent has ended the stream. */
  async #next(): Promise<A2aStreamEvent | undefined> {
    for (;;) {
      const event = await this.#take();
      if (event !== undefined && !(event instanceof RelayError)) return this.#note(event);
      if (event === undefined && this.#isSettled) return undefined;
      if (event === undefined || isAwayCode(event.code)) await this.#resume(event);
      else if (this.#isRefused(event)) await this.#fallBack();
      else throw event;
    }
  }

  async #take(): Promise<A2aStreamEvent | RelayError | undefined> {
    try {
      this.#source ??= await this.#parts.begin();
      return await this.#source.next();
    } catch (reason) {
      this.#options.signal?.throwIfAborted();
      if (reason instanceof RelayError) return reason;
      throw reason;
    }
  }

  #note(event: A2aStreamEvent): A2aStreamEvent {
    this.#taskId = taskIdOf(event) ?? this.#taskId;
    this.#lastEventId = event.eventId ?? this.#lastEventId;
    const state = stateOf(event);
    if (state !== undefined) this.#isSettled = isSettledState(state);
    if (event.message === undefined) this.#hasTask = true;
    this.#isFresh = false;
    // Each subscription begins with the current task, so that alone is nothing new.
    if (event.task === undefined || !this.#isResumed || this.#hasFallenBack) {
      this.#isIdle = false;
      this.#failures = 0;
    }
    return event;
  }

  #isOver(event: A2aStreamEvent): boolean {
    // A message instead of a task is the whole answer.
    if (event.message !== undefined) return !this.#hasTask;
    if (isTerminalState(stateOf(event))) return true;
    if (!this.#parts.endsInterrupted || !this.#isSettled) return false;
    // The first task may still have the state from before the message reached the agent.
    return event.statusUpdate !== undefined || this.#isResumed;
  }

  /** The agent refused the first request of a connection. When resuming, any refusal may mean that the task is over. */
  #isRefused(error: RelayError): boolean {
    if (!this.#isFresh || this.#hasFallenBack) return false;
    return this.#isResumed || isNotServed(error);
  }

  async #fallBack(): Promise<void> {
    this.#source?.cancel();
    this.#hasFallenBack = true;
    const taskId = this.#taskId;
    this.#source =
      this.#isResumed && taskId !== undefined ? this.#parts.poll(taskId) : await this.#parts.fallBack();
  }

  /** `broken`: why the connection broke; undefined when the agent ended the stream too early. */
  async #resume(broken: RelayError | undefined): Promise<void> {
    const { subscribe, poll, retries } = this.#parts;
    const retryMs = this.#source?.retryMs ?? 0;
    const taskId = this.#taskId;
    if (taskId === undefined) throw broken ?? endedWithoutEvent();
    if (broken === undefined && this.#isResumed && this.#isIdle && !this.#hasFallenBack)
      return this.#fallBack();
    this.#source?.cancel();
    this.#failures += 1;
    if (this.#failures > retries) throw broken ?? endedEarly(taskId);
    await this.#pause(retryMs);
    this.#isResumed = true;
    this.#isFresh = true;
    this.#isIdle = true;
    const from = { ...this.#options, lastEventId: this.#lastEventId };
    this.#source = this.#hasFallenBack ? poll(taskId) : new OpeningSource(() => subscribe(taskId, from));
  }

  async #pause(askedMs: number): Promise<void> {
    const { delays } = this.#parts;
    const firstMs = Math.max(delays.firstMs, Math.min(askedMs, delays.maxMs));
    await pause(retryDelayMs(this.#failures, { firstMs, maxMs: delays.maxMs }), this.#options);
  }
}

/** Opens on the first `next`, so that a failure to open counts as a failure of the first event. */
class OpeningSource implements A2aEventSource {
  readonly #open: () => Promise<A2aEventSource>;
  #source: A2aEventSource | undefined;

  constructor(open: () => Promise<A2aEventSource>) {
    this.#open = open;
  }

  get retryMs(): number | undefined {
    return this.#source?.retryMs;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    this.#source ??= await this.#open();
    return this.#source.next();
  }

  cancel(): void {
    this.#source?.cancel();
  }
}

/** The agent does not support the operation, and did nothing. */
function isNotServed(error: RelayError): boolean {
  return error instanceof A2aError && ["MethodNotFound", "UnsupportedOperation"].includes(error.a2a);
}

function endedWithoutEvent(): RelayError {
  return invalidAgentResponse("the stream of the agent ended without an event");
}

function endedEarly(taskId: string): RelayError {
  const message = `the agent ends the stream of the task ${taskId} again and again before the task is over`;
  return new RelayError("unavailable", `${message}; ask for the task later`);
}

export interface PolledTaskParts {
  readonly taskId: string;
  readonly getTask: (taskId: string, options: CallOptions) => Promise<A2aTask>;
  readonly pollMs: number;
  /** Yielded first. */
  readonly first?: A2aStreamEvent | undefined;
}

/** The longest pause, as a multiple of the first. */
const GROWTH_MAX = 10;
const GROWTH = 1.5;

/** Polls a task and yields it each time it has changed, until it is settled. */
export class PolledTask implements A2aEventSource {
  readonly #parts: PolledTaskParts;
  readonly #options: CallOptions;
  #seen: string | undefined;
  #isSettled = false;
  #polls = 0;

  constructor(parts: PolledTaskParts, options: CallOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    const { first } = this.#parts;
    if (this.#seen === undefined && first !== undefined) return this.#emit(first);
    while (!this.#isSettled) {
      if (this.#seen !== undefined) await pause(this.#pauseMs(), this.#options);
      const task = await this.#parts.getTask(this.#parts.taskId, this.#options);
      if (JSON.stringify(task) !== this.#seen) return this.#emit({ task });
    }
    return undefined;
  }

  cancel(): void {
    this.#isSettled = true;
  }

  #emit(event: A2aStreamEvent): A2aStreamEvent {
    this.#seen = JSON.stringify(event.task);
    this.#isSettled = isSettledState(stateOf(event));
    return event;
  }

  #pauseMs(): number {
    const { pollMs } = this.#parts;
    this.#polls += 1;
    return Math.min(pollMs * GROWTH ** (this.#polls - 1), pollMs * GROWTH_MAX);
  }
}
