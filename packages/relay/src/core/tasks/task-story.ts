import {
  type A2aMessage,
  type A2aStatus,
  type A2aTask,
  formatInstant,
  LIMITS,
  type Message,
  toA2aState,
} from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import { a2aMessageOf, a2aStatusOf, a2aTaskOf, saidMessage } from "./a2a-view.ts";

/** How much of a task is to be shown. */
export interface Shown {
  /** The newest so many messages; undefined: as many as one answer may have bytes. */
  readonly historyLength: number | undefined;
  readonly withArtifacts: boolean;
}

/** A look at a task: how it was shown, and the record as of that very moment. */
export interface Look {
  readonly task: TaskRecord;
  readonly told: A2aTask;
}

/** A task with what was said about it, read from the store and put together as A2A shows it. */
export class TaskStory {
  readonly #store: RelayStore;

  constructor(store: RelayStore) {
    this.#store = store;
  }

  async tell(task: TaskRecord, shown: Shown): Promise<A2aTask> {
    return (await this.look(task, shown)).told;
  }

  /** The task as it stands, which may be later than `known`: an artifact is in it if and only if its step is. */
  async look(known: TaskRecord, { historyLength, withArtifacts }: Shown): Promise<Look> {
    const whole = withArtifacts ? await this.#store.taskWithArtifacts(known.tenant, known.id) : undefined;
    const { task, artifacts } = whole ?? { task: known, artifacts: undefined };
    const status = await this.#status(task);
    const history = historyLength === 0 ? undefined : await this.#history(task, historyLength);
    return { task, told: a2aTaskOf(task, { status, history, artifacts }) };
  }

  /** The plain message that a task was answered with. */
  async plainMessage(task: TaskRecord): Promise<A2aMessage | undefined> {
    const message = (await this.#status(task))?.message;
    if (message === undefined) return undefined;
    // Whoever is answered with a message was never shown the task.
    const { taskId: _, ...plain } = message;
    return plain;
  }

  async #status(task: TaskRecord): Promise<A2aStatus | undefined> {
    const { tenant, id: taskId, updateCount: untilN } = task;
    if (untilN > 0) {
      const query = { tenant, taskId, untilN, statusOnly: true, limit: 1, bytesMax: LIMITS.answerBytesMax };
      const [last] = (await this.#store.lastTaskUpdates(query)).updates;
      if (last?.step.kind === "status") return a2aStatusOf(task, last.step, last);
    }
    const message = await this.#oldWords(task);
    if (message === undefined) return undefined;
    return { state: toA2aState(task.state), timestamp: formatInstant(task.updatedAtMs), message };
  }

  /** What was asked first, what was added, and what was answered: the newest, as far as there is room for them. */
  async #history(task: TaskRecord, lengthMax = Infinity): Promise<readonly A2aMessage[]> {
    const messages: A2aMessage[] = [];
    let bytes = 0;
    for await (const message of this.#newestFirst(task, lengthMax)) {
      bytes += Buffer.byteLength(JSON.stringify(message));
      if (bytes > LIMITS.answerBytesMax && messages.length > 0) break;
      messages.push(message);
      if (messages.length >= lengthMax) break;
    }
    return messages.toReversed();
  }

  async *#newestFirst(task: TaskRecord, wanted: number): AsyncGenerator<A2aMessage> {
    const { tenant, id: taskId } = task;
    const page = { limit: Math.min(wanted, LIMITS.streamPageMessagesMax), bytesMax: LIMITS.answerBytesMax };
    let isTold = false;
    for (let untilN = task.updateCount; untilN > 0;) {
      const query = { tenant, taskId, untilN, statusOnly: false, ...page };
      const { updates, hasMore } = await this.#store.lastTaskUpdates(query);
      for (const update of updates) {
        isTold ||= update.step.kind === "status";
        const message = await this.#messageOf(task, update);
        if (message !== undefined) yield message;
      }
      untilN = hasMore ? (updates.at(-1)?.n ?? 0) - 1 : 0;
    }
    const old = isTold ? undefined : await this.#oldWords(task);
    if (old !== undefined) yield old;
    const asked = await this.#asked(task);
    if (asked !== undefined) yield asked;
  }

  async #messageOf(task: TaskRecord, { step, n }: TaskUpdate): Promise<A2aMessage | undefined> {
    if (step.kind === "message") return this.#message(task, step.messageId, "ROLE_USER");
    return step.kind === "status" && step.said !== undefined ? saidMessage(task, step.said, n) : undefined;
  }

  /** The message that handed a task over is not its requester's. */
  async #asked(task: TaskRecord): Promise<A2aMessage | undefined> {
    const { firstMessageId, handoffs, messageId } = task;
    const askedId = firstMessageId ?? (handoffs.length === 0 ? messageId : undefined);
    return askedId === undefined ? undefined : this.#message(task, askedId, "ROLE_USER");
  }

  /** What was said last about a task from before its steps were kept. Whoever canceled one knows why. */
  async #oldWords(task: TaskRecord): Promise<A2aMessage | undefined> {
    const { resultMessageId, statusText: text, state } = task;
    if (state === "canceled") return undefined;
    const result =
      resultMessageId === null ? undefined : await this.#message(task, resultMessageId, "ROLE_AGENT");
    return result ?? (text === null ? undefined : saidMessage(task, { text }, 0));
  }

  async #message(
    task: TaskRecord,
    messageId: string,
    role: A2aMessage["role"],
  ): Promise<A2aMessage | undefined> {
    const record = await this.#store.message(task.tenant, messageId);
    return record === undefined ? undefined : a2aMessageOf(JSON.parse(record.json) as Message, role, task);
  }
}
