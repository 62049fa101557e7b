import { type A2aMessage, type A2aStatus, type A2aTask, LIMITS, type Message } from "@a2a-relay/protocol";
import type { RelayStore } from "../environment/relay-store.ts";
import type { TaskRecord } from "../tasks/task-record.ts";
import type { TaskUpdate } from "../tasks/task-update.ts";
import { a2aMessageOf, a2aStatusOf, a2aTaskOf, saidMessage } from "./a2a-view.ts";

/** How much of a task is to be shown. */
export interface Shown {
  /** The newest so many messages; undefined: all. */
  readonly historyLength: number | undefined;
  readonly withArtifacts: boolean;
}

/** A task with what was said about it, read from the store and put together as A2A shows it. */
export class TaskStory {
  readonly #store: RelayStore;

  constructor(store: RelayStore) {
    this.#store = store;
  }

  async tell(task: TaskRecord, { historyLength, withArtifacts }: Shown): Promise<A2aTask> {
    const steps = await this.#steps(task);
    const last = steps.findLast(({ step }) => step.kind === "status");
    const history = historyLength === 0 ? undefined : await this.#history(task, steps, historyLength);
    const artifacts = withArtifacts ? await this.#store.artifacts(task.tenant, task.id) : undefined;
    return a2aTaskOf(task, { status: statusIn(task, last), history, artifacts });
  }

  /** The plain message that a task was answered with. */
  async plainMessage(task: TaskRecord): Promise<A2aMessage | undefined> {
    const steps = await this.#steps(task);
    const message = statusIn(
      task,
      steps.findLast(({ step }) => step.kind === "status"),
    )?.message;
    if (message === undefined) return undefined;
    // Whoever is answered with a message was never shown the task.
    const { taskId: _, ...plain } = message;
    return plain;
  }

  /** What was asked first, what was added, and what was answered. */
  async #history(
    task: TaskRecord,
    steps: readonly TaskUpdate[],
    length: number | undefined,
  ): Promise<readonly A2aMessage[]> {
    const asked = await this.#letter(task, task.firstMessageId ?? task.messageId);
    const said = steps.filter(({ step }) => step.kind === "message" || saidIn(step) !== undefined);
    const kept = length === undefined ? said : said.slice(-length);
    const messages: A2aMessage[] = [];
    if (asked !== undefined && (length === undefined || kept.length < length)) messages.push(asked);
    for (const { step, n } of kept) {
      if (step.kind === "message") {
        const added = await this.#letter(task, step.messageId);
        if (added !== undefined) messages.push(added);
        continue;
      }
      const words = saidIn(step);
      if (words !== undefined) messages.push(saidMessage(task, words, n));
    }
    return messages;
  }

  async #letter(task: TaskRecord, messageId: string): Promise<A2aMessage | undefined> {
    const record = await this.#store.message(task.tenant, messageId);
    return record === undefined
      ? undefined
      : a2aMessageOf(JSON.parse(record.json) as Message, "ROLE_USER", task);
  }

  async #steps({ tenant, id: taskId, updateCount }: TaskRecord): Promise<readonly TaskUpdate[]> {
    const steps: TaskUpdate[] = [];
    if (updateCount === 0) return steps;
    for (let afterN = 0; ;) {
      const { updates, hasMore } = await this.#store.taskUpdates({
        tenant,
        taskId,
        afterN,
        withArtifacts: false,
        limit: LIMITS.streamPageMessagesMax,
        bytesMax: LIMITS.answerBytesMax,
      });
      // What came since the task was read is not part of this look at it.
      steps.push(...updates.filter(({ n }) => n <= updateCount));
      const last = updates.at(-1);
      if (!hasMore || last === undefined || last.n >= updateCount) return steps;
      afterN = last.n;
    }
  }
}

function saidIn(step: TaskUpdate["step"]): Parameters<typeof saidMessage>[1] | undefined {
  return step.kind === "status" ? step.said : undefined;
}

function statusIn(task: TaskRecord, update: TaskUpdate | undefined): A2aStatus | undefined {
  return update?.step.kind === "status" ? a2aStatusOf(task, update.step, update) : undefined;
}
