import { A2aError, type A2aTask, RelayError } from "@a2a-relay/protocol";
import { pause } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { isAwayCode, retryDelayMs, type RetryDelays } from "../http/retry.ts";
import { invalidAgentResponse } from "./agent-answer.ts";
import type { A2aOpenOptions } from "./agent-binding.ts";
import { type A2aEventSource, type A2aStreamEvent, isSettledState, isTerminalState, stateOf, taskIdOf } from "./stream-event.ts";

export interface FollowedTaskParts {
  /** Where the events begin. */
  readonly begin: () => Promise<A2aEventSource>;
  /** Another way to begin, for when the agent says that it does not do it in this one. */
  readonly fallBack: () => Promise<A2aEventSource>;
  /** Takes the task up again. */
  readonly subscribe: (taskId: string, options: A2aOpenOptions) => Promise<A2aEventSource>;
  /** Looks at the task from time to time, for agents that cannot be subscribed to. */
  readonly poll: (taskId: string) => A2aEventSource;
  readonly retries: number;
  readonly delays: RetryDelays;
  /** It ends when the agent waits for somebody: whoever sent has to act, and a mere watcher has not. */
  readonly endsInterrupted: boolean;
  readonly taskId?: string | undefined;
  readonly lastEventId?: string | undefined;
}

/** The events of a task until it is settled, over as many connections as it takes. */
export class FollowedTask {
  readonly #parts: FollowedTaskParts;
  readonly #options: CallOptions;
  #source: A2aEventSource | undefined;
  #taskId: string | undefined;
  #lastEventId: string | undefined;
  #hasTask: boolean;
  #isSettled = false;
  /** Connections since the last one that brought news. */
  #failures = 0;
  /** Nothing has come over this connection yet. */
  #isFresh = true;
  /** Nor anything that was not known before. */
  #isIdle = true;
  #isResumed = false;
  /** There is no simpler way left to ask. */
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

  /** Undefined once the task is settled and the agent has no more to say. */
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
    // Each subscription begins with the task as it stands, so that alone is no sign that things go on.
    if (event.task === undefined || !this.#isResumed || this.#hasFallenBack) {
      this.#isIdle = false;
      this.#failures = 0;
    }
    return event;
  }

  #isOver(event: A2aStreamEvent): boolean {
    // A message in the place of a task is the whole answer.
    if (event.message !== undefined) return !this.#hasTask;
    if (isTerminalState(stateOf(event))) return true;
    if (!this.#parts.endsInterrupted || !this.#isSettled) return false;
    // The task that comes first may still be as it was before what was just sent reached the agent.
    return event.statusUpdate !== undefined || this.#isResumed;
  }

  /** A first answer that says no. To a task that is taken up again, any no may mean that it is over by now. */
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

  /** `broken`: why the connection is gone; undefined where the agent ended the stream itself, too early. */
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

/** Opens when it is first asked, so that failing to open is one way of failing to give the first event. */
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

/** The agent has done nothing, because it does not do such things. */
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
  /** What is known of the task already, and comes first. */
  readonly first?: A2aStreamEvent | undefined;
}

/** So many times the first pause becomes the longest. */
const GROWTH_MAX = 10;
const GROWTH = 1.5;

/** A task as a stream, of an agent that has none: the task comes each time it has changed, until it is settled. */
export class PolledTask implements A2aEventSource {
  readonly #parts: PolledTaskParts;
  readonly #options: CallOptions;
  #seen: string | undefined;
  #isSettled = false;
  #looks = 0;

  constructor(parts: PolledTaskParts, options: CallOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    const { first } = this.#parts;
    if (this.#seen === undefined && first !== undefined) return this.#show(first);
    while (!this.#isSettled) {
      if (this.#seen !== undefined) await pause(this.#pauseMs(), this.#options);
      const task = await this.#parts.getTask(this.#parts.taskId, this.#options);
      if (JSON.stringify(task) !== this.#seen) return this.#show({ task });
    }
    return undefined;
  }

  cancel(): void {
    this.#isSettled = true;
  }

  #show(event: A2aStreamEvent): A2aStreamEvent {
    this.#seen = JSON.stringify(event.task);
    this.#isSettled = isSettledState(stateOf(event));
    return event;
  }

  #pauseMs(): number {
    const { pollMs } = this.#parts;
    this.#looks += 1;
    return Math.min(pollMs * GROWTH ** (this.#looks - 1), pollMs * GROWTH_MAX);
  }
}
