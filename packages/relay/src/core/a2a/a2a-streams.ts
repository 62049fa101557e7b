import { type A2aStreamResponse, isTerminal, LIMITS } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import { taskTopic } from "../ports/change-feed.ts";
import { follow, type PollResult } from "../mechanisms/follow.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import type { TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import { a2aEventOf } from "../tasks/a2a-view.ts";
import { assertAnswer } from "./agent-answer.ts";
import type { TaskStory } from "../tasks/task-story.ts";

/** Events of one task. The id of each is the number of its step: whoever saw it has seen all before it. */
export interface A2aPage {
  readonly events: readonly A2aEvent[];
}

export interface A2aEvent {
  readonly n: number;
  readonly event: A2aStreamResponse;
  /** The stream ends behind it. */
  readonly isFinal: boolean;
  /** Which of the task's artifacts it is about, for readers that know them by number. */
  readonly artifactIndex?: number;
}

export interface A2aFollowing extends WaitOptions {
  /** Absent: begins with the task as it stands. */
  readonly afterN?: number | undefined;
  /** Ends where the task waits for its requester. */
  readonly endsAtQuestion: boolean;
  /** The name by which its reader knows the task. */
  readonly shownAs: string;
  /** Whether its reader knows artifacts by number. */
  readonly numbersArtifacts: boolean;
}

/** What happens to a task, for its A2A callers: the same events in the same order for all of them. */
export class A2aStreams {
  readonly #parts: ServiceParts & { readonly story: TaskStory };
  readonly #heartbeatMs: number;

  constructor(
    parts: ServiceParts & { readonly story: TaskStory },
    settings: { readonly heartbeatMs: number },
  ) {
    this.#parts = parts;
    this.#heartbeatMs = settings.heartbeatMs;
  }

  follow(
    principal: Principal,
    { tenant, id }: TaskRecord,
    { afterN, signal, ...how }: A2aFollowing,
  ): AsyncIterable<A2aPage> {
    const { clock, guard, throttle, waitQuota } = this.#parts;
    let seenN = afterN;
    return follow({
      watch: waitQuota.watch(principal, taskTopic(tenant, id)),
      clock,
      throttle,
      heartbeatMs: this.#heartbeatMs,
      signal,
      poll: async () => {
        const task = await this.#parts.store.task(tenant, id);
        if (task === undefined) return { page: { events: [] }, isEmpty: true, isLast: true };
        const { n, ...sight } =
          seenN === undefined ? await this.#begin(task, how) : await this.#goOn(task, seenN, how);
        seenN = n;
        return sight;
      },
      assertAllowed: () => guard.assertStillValid(principal),
    });
  }

  /** What is in the task as it is shown first does not come again behind it. */
  async #begin(known: TaskRecord, { endsAtQuestion, shownAs }: How): Promise<SeenTo> {
    const shown = { historyLength: undefined, withArtifacts: true };
    const { task, told } = await this.#parts.story.look(known, shown);
    const n = task.updateCount;
    const isFinal = isEnd(task.state, endsAtQuestion);
    const event = { task: { ...told, id: shownAs } };
    assertAnswer(event);
    return { page: { events: [{ n, event, isFinal }] }, n, isEmpty: false, isLast: isFinal };
  }

  async #goOn(task: TaskRecord, afterN: number, { endsAtQuestion, ...shown }: How): Promise<SeenTo> {
    const { updates, hasMore } = await this.#parts.store.taskUpdates({
      tenant: task.tenant,
      taskId: task.id,
      afterN,
      withArtifacts: true,
      limit: LIMITS.streamPageMessagesMax,
      bytesMax: LIMITS.streamPageBytesMax,
    });
    const end = updates.findIndex((update) => isEndStep(update, endsAtQuestion));
    const seen = end === -1 ? updates : updates.slice(0, end + 1);
    const events: A2aEvent[] = [];
    for (const update of seen) {
      const event = a2aEventOf(task, update);
      if (event === undefined) continue;
      assertAnswer(event);
      const isFinal = isEndStep(update, endsAtQuestion);
      events.push({ n: update.n, event: underName(event, shown.shownAs), isFinal });
    }
    const n = seen.at(-1)?.n ?? afterN;
    // A task that was over before has nothing behind what its reader has seen.
    const isLast = end !== -1 || (isTerminal(task.state) && n >= task.updateCount);
    const page = { events: shown.numbersArtifacts ? await this.#numbered(task, events) : events };
    return { page, n, isEmpty: events.length === 0, hasMore, isLast };
  }

  async #numbered({ tenant, id }: TaskRecord, events: readonly A2aEvent[]): Promise<readonly A2aEvent[]> {
    if (events.every(({ event }) => event.artifactUpdate === undefined)) return events;
    const ids = (await this.#parts.store.artifacts(tenant, id)).map(({ artifactId }) => artifactId);
    return events.map((each) => {
      const { artifactUpdate } = each.event;
      return artifactUpdate === undefined
        ? each
        : { ...each, artifactIndex: ids.indexOf(artifactUpdate.artifact.artifactId) };
    });
  }
}

type How = Pick<A2aFollowing, "endsAtQuestion" | "numbersArtifacts" | "shownAs">;

/** A look, and the last step that it saw. */
type SeenTo = PollResult<A2aPage> & { readonly n: number };

/** Messages keep their ids, whatever the task is called. */
function underName({ statusUpdate, artifactUpdate }: A2aStreamResponse, taskId: string): A2aStreamResponse {
  if (statusUpdate !== undefined) return { statusUpdate: { ...statusUpdate, taskId } };
  return artifactUpdate === undefined ? {} : { artifactUpdate: { ...artifactUpdate, taskId } };
}

function isEndStep({ step }: TaskUpdate, endsAtQuestion: boolean): boolean {
  return step.kind === "status" && isEnd(step.state, endsAtQuestion);
}

function isEnd(state: TaskRecord["state"], endsAtQuestion: boolean): boolean {
  return isTerminal(state) || (endsAtQuestion && (state === "input-required" || state === "auth-required"));
}
