import { type AgentId, parseRecordId, RelayError } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";

/** The task, if the caller is one of the parties; else it looks as if there were none. */
export async function visibleTask(
  { store, guard }: { readonly store: RelayStore; readonly guard: Guard },
  principal: Principal,
  id: string,
  partiesOf = ({ requester, assignee }: TaskRecord): readonly AgentId[] => [requester, assignee],
): Promise<TaskRecord> {
  const task = await store.task(principal.tenant, parseRecordId(id, "task_id"));
  // Asked also of what is not there: else how it is refused would tell the two apart.
  const parties: readonly AgentId[] = task === undefined ? [] : partiesOf(task);
  const unseen = `there is no task ${id}`;
  await guard.authorize(principal, "tasks.read", { parties, atMs: task?.createdAtMs }, unseen);
  if (task === undefined) throw new RelayError("not_found", unseen);
  return task;
}
