import { POSTMASTER } from "@a2a-relay/protocol";
import { combine } from "../mechanisms/commit-retry.ts";
import type { Changes } from "../ports/relay-store.ts";
import type { MessageDefaults } from "./notices.ts";
import type { CachedResult, TaskRecord } from "../ports/tasks.ts";
import { endingDigest, endTask } from "./task-result.ts";
import { tellEnd, wholeArtifact } from "./task-update.ts";

/** What the mail of a task says that nobody has to do any more. */
export function replayReason(cached: CachedResult): string {
  return `answered with the result of task ${cached.taskId}, which asked for the same`;
}

/** Ends a task with what an earlier one had for its result. Its own mail is for the caller to settle. */
export function replayResult(
  task: TaskRecord,
  cached: CachedResult,
  defaults: MessageDefaults,
  requesterIsRegistered: boolean,
): { readonly task: TaskRecord; readonly changes: Partial<Changes> } {
  const shown = tellEnd(task, cached.artifacts.map(wholeArtifact), defaults.nowMs);
  const ended = endTask(
    shown.task,
    {
      state: "completed",
      resultStatus: "ok",
      text: cached.text,
      parts: cached.parts ?? undefined,
      replayOf: cached.taskId,
      digest: endingDigest("completed", { replay_of: cached.taskId }),
      actor: POSTMASTER,
      sender: task.assignee,
    },
    defaults,
    requesterIsRegistered,
    cached.artifacts,
  );
  const artifacts = cached.artifacts.map((artifact) => ({ tenant: task.tenant, taskId: task.id, artifact }));
  return { task: ended.task, changes: combine(task.tenant, [shown.changes, ended.changes, { artifacts }]) };
}
