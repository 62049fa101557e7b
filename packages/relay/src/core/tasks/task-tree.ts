import { LIMITS, type TaskTreeView } from "@a2a-relay/protocol";
import { isAllowed } from "../access/authorize.ts";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { summarizeTask } from "./task-view.ts";

interface TaskNode {
  readonly task: TaskRecord;
  readonly children: readonly TaskNode[];
}

/** The task and what came of it, as far as the caller takes part in it, to a bounded size. */
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
  const counts = await store.countArtifacts(principal.tenant, ids);
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
  return store.tasks({ tenant, parentId, ...any, afterId: "", limit });
}
