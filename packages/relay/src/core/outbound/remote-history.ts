import { type A2aMessage, type A2aTask, LIMITS, type TaskState } from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { HISTORY_LENGTH } from "./remote-message.ts";
import { contentOf, isSilent, listOf, messageIdOf, type RemoteContent, resultOf } from "./remote-content.ts";

/**
 * What the agent said between two looks, oldest first: it stands in the history of its task and is not on record yet.
 * What has no id cannot be told from what is, and is left out; so is what is put on record with the status itself.
 */
export async function saidBetween(
  store: RelayStore,
  ours: TaskRecord,
  theirs: A2aTask,
  state: TaskState,
): Promise<readonly RemoteContent[]> {
  const newest = state === "completed" ? resultOf(theirs) : contentOf(theirs.status.message);
  const said = new Map<string, RemoteContent>();
  for (const message of listOf(theirs.history).slice(-HISTORY_LENGTH)) {
    const content = contentOf(message);
    const id = messageIdOf(content);
    if (id !== undefined && isOf(theirs, message) && !isSilent(content)) said.set(id, content);
  }
  for (const id of [messageIdOf(newest), messageIdOf(contentOf(theirs.status.message))]) {
    if (id !== undefined) said.delete(id);
  }
  await forgetRecorded(store, ours, said);
  return [...said.values()];
}

/** Some agents keep what was said in the whole context with each of its tasks. */
function isOf({ id }: A2aTask, { role, taskId }: A2aMessage): boolean {
  return role === "ROLE_AGENT" && (typeof taskId !== "string" || taskId === "" || taskId === id);
}

/** From the newest step on: as a rule all of them are among the last few. */
async function forgetRecorded(
  store: RelayStore,
  ours: TaskRecord,
  said: Map<string, unknown>,
): Promise<void> {
  const { tenant, id: taskId } = ours;
  const page = { statusOnly: true, limit: 2 * HISTORY_LENGTH, bytesMax: LIMITS.answerBytesMax };
  for (let untilN = ours.updateCount; untilN > 0 && said.size > 0;) {
    const { updates, hasMore } = await store.lastTaskUpdates({ tenant, taskId, untilN, ...page });
    for (const { step } of updates) {
      const id = step.kind === "status" ? step.said?.a2aMessage?.["messageId"] : undefined;
      if (typeof id === "string") said.delete(id);
    }
    untilN = hasMore ? (updates.at(-1)?.n ?? 0) - 1 : 0;
  }
}
