import {
  type A2aMessage,
  type A2aStatus,
  type A2aTask,
  formatInstant,
  LIMITS,
  toA2aState,
} from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import { a2aMessageOf, a2aStatusOf, a2aTaskOf, saidMessage } from "./a2a-view.ts";
import { bytesAsJson, messageOf } from "../mechanisms/stored-json.ts";

/** How much of a task to read. */
export interface A2aTaskExtent {
  /** The newest messages, at most so many; undefined: as many as fit into one answer. */
  readonly historyLength: number | undefined;
  readonly withArtifacts: boolean;
}

export interface A2aTaskRead {
  readonly record: TaskRecord;
  readonly task: A2aTask;
}

/** Reads a task with its status, history and artifacts in A2A's form. */
export class A2aTaskReader {
  readonly #store: RelayStore;

  constructor(store: RelayStore) {
    this.#store = store;
  }

  /**
   * With artifacts the record is read again and may be newer than `known`: the task contains an artifact exactly if
   * the record counts its update.
   */
  async read(known: TaskRecord, { historyLength, withArtifacts }: A2aTaskExtent): Promise<A2aTaskRead> {
    const whole = withArtifacts ? await this.#store.tasks.withArtifacts(known.tenant, known.id) : undefined;
    const { task: record, artifacts } = whole ?? { task: known, artifacts: [] };
    const status = await this.#status(record);
    const history = historyLength === 0 ? [] : await this.#history(record, historyLength);
    return { record, task: a2aTaskOf(record, { status, history, artifacts }) };
  }

  /** The message that answers a plain task. It names no task: the caller never sees one. */
  async plainMessage(task: TaskRecord): Promise<A2aMessage | undefined> {
    const message = (await this.#status(task))?.message;
    if (message === undefined) return undefined;
    const { taskId: _, ...plain } = message;
    return plain;
  }

  async #status(task: TaskRecord): Promise<A2aStatus | undefined> {
    const { tenant, id: taskId, updateCount: untilN } = task;
    if (untilN > 0) {
      const query = { tenant, taskId, untilN, statusOnly: true, limit: 1, bytesMax: LIMITS.answerBytesMax };
      const [last] = (await this.#store.tasks.lastUpdates(query)).updates;
      if (last?.step.kind === "status") return a2aStatusOf(task, last.step, last);
    }
    const message = await this.#messageWithoutUpdates(task);
    if (message === undefined) return undefined;
    return { state: toA2aState(task.state), timestamp: formatInstant(task.updatedAtMs), message };
  }

  /** The newest messages in their order, as many as fit into one answer; at least one. */
  async #history(task: TaskRecord, lengthMax = Infinity): Promise<readonly A2aMessage[]> {
    const messages: A2aMessage[] = [];
    let bytes = 0;
    for await (const message of this.#newestFirst(task, lengthMax)) {
      bytes += bytesAsJson(message);
      if (bytes > LIMITS.answerBytesMax && messages.length > 0) break;
      messages.push(message);
      if (messages.length >= lengthMax) break;
    }
    return messages.toReversed();
  }

  async *#newestFirst(task: TaskRecord, lengthMax: number): AsyncGenerator<A2aMessage> {
    const { tenant, id: taskId } = task;
    const page = {
      limit: Math.min(lengthMax, LIMITS.streamPageMessagesMax),
      bytesMax: LIMITS.answerBytesMax,
    };
    let hasStatus = false;
    for (let untilN = task.updateCount; untilN > 0;) {
      const query = { tenant, taskId, untilN, statusOnly: false, ...page };
      const { updates, hasMore } = await this.#store.tasks.lastUpdates(query);
      for (const update of updates) {
        hasStatus ||= update.step.kind === "status";
        const message = await this.#messageOf(task, update);
        if (message !== undefined) yield message;
      }
      untilN = hasMore ? (updates.at(-1)?.n ?? 0) - 1 : 0;
    }
    const last = hasStatus ? undefined : await this.#messageWithoutUpdates(task);
    if (last !== undefined) yield last;
    const first = await this.#firstMessage(task);
    if (first !== undefined) yield first;
  }

  async #messageOf(task: TaskRecord, { step, n }: TaskUpdate): Promise<A2aMessage | undefined> {
    if (step.kind === "message") return this.#message(task, step.messageId, "ROLE_USER");
    return step.kind === "status" && step.said !== undefined ? saidMessage(task, step.said, n) : undefined;
  }

  /** The request. The message that handed a task over comes from an agent, not from the requester. */
  async #firstMessage(task: TaskRecord): Promise<A2aMessage | undefined> {
    const { firstMessageId, handoffs, messageId } = task;
    const requestId = firstMessageId ?? (handoffs.length === 0 ? messageId : undefined);
    return requestId === undefined ? undefined : this.#message(task, requestId, "ROLE_USER");
  }

  /** The last answer of a task that is older than task updates. A canceled task has none. */
  async #messageWithoutUpdates(task: TaskRecord): Promise<A2aMessage | undefined> {
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
    const [record] = await this.#store.messages.get(task.tenant, [messageId]);
    return record === undefined ? undefined : a2aMessageOf(messageOf(record), role, task);
  }
}
