import { type A2aStreamResponse, isTerminal, LIMITS, type TaskState } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import { follow, type PollResult } from "../mechanisms/follow.ts";
import type { Throttle } from "../mechanisms/throttle.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import { taskTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import type { A2aTaskReader } from "../tasks/a2a-task.ts";
import { a2aEventOf } from "../tasks/a2a-view.ts";
import { assertAnswer } from "./a2a-message.ts";

export interface A2aPage {
  readonly events: readonly A2aEvent[];
}

export interface A2aEvent {
  /** The number of the update: a reader of this event has received all updates up to it. */
  readonly n: number;
  readonly event: A2aStreamResponse;
  /** The stream ends after it. */
  readonly isFinal: boolean;
  /** The index of the event's artifact in the task, for readers of A2A 0.1. */
  readonly artifactIndex?: number;
}

interface A2aStreamParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly throttle: Throttle;
  readonly waitQuota: WaitQuota;
  readonly taskReader: A2aTaskReader;
}

interface StreamForm {
  /** Whether the stream also ends when the task waits for its requester. */
  readonly endsAtQuestion: boolean;
  /** The task's id in all events. */
  readonly taskId: string;
  /** Whether events have an `artifactIndex`. */
  readonly numbersArtifacts: boolean;
}

export interface A2aStreamOptions extends StreamForm, WaitOptions {
  /** Absent: the stream begins with the task itself. */
  readonly afterN?: number | undefined;
}

/** A poll, and the number of the last update that it read. */
type UpdatePoll = PollResult<A2aPage> & { readonly n: number };

/** Streams the updates of a task. All readers get the same events in the same order. */
export class A2aStreams {
  readonly #parts: A2aStreamParts;
  readonly #heartbeatMs: number;

  constructor(parts: A2aStreamParts, settings: { readonly heartbeatMs: number }) {
    this.#parts = parts;
    this.#heartbeatMs = settings.heartbeatMs;
  }

  follow(
    principal: Principal,
    { tenant, id }: TaskRecord,
    { afterN, signal, ...form }: A2aStreamOptions,
  ): AsyncIterable<A2aPage> {
    const { store, clock, guard, throttle, waitQuota } = this.#parts;
    let lastN = afterN;
    return follow({
      watch: waitQuota.watch(principal, taskTopic(tenant, id)),
      clock,
      throttle,
      heartbeatMs: this.#heartbeatMs,
      signal,
      poll: async () => {
        const [task] = await store.tasks.get(tenant, [id]);
        if (task === undefined) return { page: { events: [] }, isEmpty: true, isLast: true };
        const { n, ...result } =
          lastN === undefined ? await this.#readTask(task, form) : await this.#readUpdates(task, lastN, form);
        lastN = n;
        return result;
      },
      assertAllowed: () => guard.assertStillValid(principal),
    });
  }

  /** Updates that the task already contains do not follow it. */
  async #readTask(known: TaskRecord, { endsAtQuestion, taskId }: StreamForm): Promise<UpdatePoll> {
    const extent = { historyLength: undefined, withArtifacts: true };
    const { record, task } = await this.#parts.taskReader.read(known, extent);
    const n = record.updateCount;
    const isFinal = isEnd(record.state, endsAtQuestion);
    const event = { task: { ...task, id: taskId } };
    assertAnswer(event);
    return { page: { events: [{ n, event, isFinal }] }, n, isEmpty: false, isLast: isFinal };
  }

  async #readUpdates(task: TaskRecord, afterN: number, form: StreamForm): Promise<UpdatePoll> {
    const { updates, hasMore } = await this.#parts.store.tasks.updates({
      tenant: task.tenant,
      taskId: task.id,
      afterN,
      withArtifacts: true,
      limit: LIMITS.streamPageMessagesMax,
      bytesMax: LIMITS.streamPageBytesMax,
    });
    const end = updates.findIndex((update) => isEndUpdate(update, form));
    const untilEnd = end === -1 ? updates : updates.slice(0, end + 1);
    const events: A2aEvent[] = [];
    for (const update of untilEnd) {
      const event = a2aEventOf(task, update);
      if (event === undefined) continue;
      assertAnswer(event);
      events.push({ n: update.n, event: withTaskId(event, form.taskId), isFinal: isEndUpdate(update, form) });
    }
    const n = untilEnd.at(-1)?.n ?? afterN;
    // A reader that resumes a finished task may have received all of its updates.
    const isLast = end !== -1 || (isTerminal(task.state) && n >= task.updateCount);
    const page = { events: form.numbersArtifacts ? await this.#numbered(task, events) : events };
    return { page, n, isEmpty: events.length === 0, hasMore, isLast };
  }

  async #numbered({ tenant, id }: TaskRecord, events: readonly A2aEvent[]): Promise<readonly A2aEvent[]> {
    if (events.every(({ event }) => event.artifactUpdate === undefined)) return events;
    const ids = (await this.#parts.store.tasks.artifacts(tenant, id)).map(({ artifactId }) => artifactId);
    return events.map((each) => {
      const { artifactUpdate } = each.event;
      return artifactUpdate === undefined
        ? each
        : { ...each, artifactIndex: ids.indexOf(artifactUpdate.artifact.artifactId) };
    });
  }
}

function withTaskId({ statusUpdate, artifactUpdate }: A2aStreamResponse, taskId: string): A2aStreamResponse {
  if (statusUpdate !== undefined) return { statusUpdate: { ...statusUpdate, taskId } };
  return artifactUpdate === undefined ? {} : { artifactUpdate: { ...artifactUpdate, taskId } };
}

function isEndUpdate({ step }: TaskUpdate, { endsAtQuestion }: StreamForm): boolean {
  return step.kind === "status" && isEnd(step.state, endsAtQuestion);
}

/** Whether the task is over or, with `orQuestion`, waits for its requester. */
export function isEnd(state: TaskState, orQuestion: boolean): boolean {
  return isTerminal(state) || (orQuestion && (state === "input-required" || state === "auth-required"));
}
