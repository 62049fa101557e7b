import {
  type AgentId,
  type Artifact,
  formatInstant,
  LIMITS,
  parseRecordId,
  RelayError,
  type TaskSummary,
  type TaskTreeView,
  type TaskView,
} from "@a2a-relay/protocol";
import { isAllowed } from "../access/authorize.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";

/** The task, if the caller is one of its parties. Any other caller gets the answer for an unknown task. */
export async function visibleTask(
  { store, guard }: { readonly store: RelayStore; readonly guard: Guard },
  principal: Principal,
  id: string,
  partiesOf = ({ requester, assignee }: TaskRecord): readonly AgentId[] => [requester, assignee],
): Promise<TaskRecord> {
  const [task] = await store.tasks.get(principal.tenant, [parseRecordId(id, "task_id")]);
  // An unknown task is authorised too, so that both refusals are the same.
  const parties: readonly AgentId[] = task === undefined ? [] : partiesOf(task);
  const unseen = `there is no task ${id}`;
  await guard.authorize(principal, "tasks.read", { parties, atMs: task?.createdAtMs }, unseen);
  if (task === undefined) throw new RelayError("not_found", unseen);
  return task;
}

export function viewTask(task: TaskRecord, artifacts: readonly Artifact[]): TaskView {
  return { ...membersOf(task), artifacts };
}

/** The form of lists and trees, which count artifacts instead of containing them. */
export function summarizeTask(task: TaskRecord, artifactCount: number): TaskSummary {
  return { ...membersOf(task), artifact_count: artifactCount };
}

interface TaskNode {
  readonly task: TaskRecord;
  readonly children: readonly TaskNode[];
}

/** The task and its subtasks to which the caller is a party, at most `treeTasksMax` in all. */
export async function taskTree(
  store: RelayStore,
  principal: Principal,
  root: TaskRecord,
): Promise<TaskTreeView> {
  const found: TaskRecord[] = [];
  const left = (): number => LIMITS.treeTasksMax - found.length;
  const grow = async (task: TaskRecord): Promise<TaskNode> => {
    found.push(task);
    const children = left() > 0 ? await childrenOf(store, task, left()) : [];
    const grown: TaskNode[] = [];
    for (const child of children) {
      const parties = [child.requester, child.assignee];
      if (left() > 0 && isAllowed(principal, "tasks.read", { parties })) grown.push(await grow(child));
    }
    return { task, children: grown };
  };
  const tree = await grow(root);
  const ids = found.map(({ id }) => id);
  const counts = await store.tasks.countArtifacts(principal.tenant, ids);
  const view = ({ task, children }: TaskNode): TaskTreeView => ({
    task: summarizeTask(task, counts.get(task.id) ?? 0),
    children: children.map(view),
  });
  return view(tree);
}

function childrenOf(
  store: RelayStore,
  { tenant, id: parentId }: TaskRecord,
  limit: number,
): Promise<readonly TaskRecord[]> {
  const any = { agentId: undefined, state: undefined, threadId: undefined };
  return store.tasks.list({ tenant, parentId, ...any, afterId: "", limit });
}

function membersOf(task: TaskRecord): Omit<TaskView, "artifacts"> {
  return {
    id: task.id,
    state: task.state,
    requester: task.requester,
    assignee: task.assignee,
    thread_id: task.threadId,
    message_id: task.messageId,
    subject: task.subject,
    ...(task.parentId === null ? {} : { parent: task.parentId }),
    ...(task.deadlineMs === null ? {} : { deadline_ms: task.deadlineMs }),
    ...(task.statusText === null ? {} : { status_text: task.statusText }),
    ...(task.resultStatus === null ? {} : { result_status: task.resultStatus }),
    ...(task.resultMessageId === null ? {} : { result_message_id: task.resultMessageId }),
    ...(task.isPlain ? { plain: true } : {}),
    handoffs: task.handoffs,
    created_at: formatInstant(task.createdAtMs),
    updated_at: formatInstant(task.updatedAtMs),
  };
}
