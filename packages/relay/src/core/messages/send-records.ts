import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { digestOf } from "../rules/digest.ts";
import type { SendRecords } from "./decide-send.ts";
import { type MessageDraft, taskKindOf, type TaskNaming } from "./message-draft.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

interface LoadParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
}

interface LoadedMessage {
  readonly draft: MessageDraft;
  readonly naming: TaskNaming | undefined;
  readonly sender: AgentId;
  readonly recipient: AgentId;
}

/** The records that the message refers to. A second read follows ids that the first found. */
export async function loadRecords(
  parts: LoadParts,
  principal: Principal,
  { draft, naming, sender, recipient }: LoadedMessage,
): Promise<SendRecords> {
  const { store } = parts;
  const { tenant } = principal;
  if (naming !== undefined) await assertOwnName(store, tenant, naming);
  const original =
    draft.replyTo === undefined ? undefined : (await store.messages.get(tenant, [draft.replyTo]))[0];
  const isParty = original?.sender === sender || original?.recipient === sender;
  if (draft.kind === "reply" && draft.replyTo !== undefined && !isParty) {
    throw new RelayError("not_found", `reply_to: ${sender} has no message ${draft.replyTo}`);
  }
  const answersTask = draft.kind === "reply" || draft.kind === "status" || draft.kind === "handoff";
  const taskId = draft.taskId ?? (answersTask && isParty ? (original?.taskId ?? undefined) : undefined);
  const task = taskId === undefined ? undefined : (await store.tasks.get(tenant, [taskId]))[0];
  await assertSeesTask(parts, principal, draft, sender, task);
  const parent =
    draft.parentId === undefined ? undefined : (await store.tasks.get(tenant, [draft.parentId]))[0];
  if (draft.parentId !== undefined) await assertSeesParent(parts, principal, draft.parentId, parent);
  const decidesProposal = draft.given.decision !== undefined && isParty && original !== undefined;
  return {
    original: isParty ? original : undefined,
    originalDelivery: decidesProposal ? (await store.deliveries.get(tenant, [original.id]))[0] : undefined,
    task,
    taskDeliveries: task === undefined ? [] : await store.deliveries.openOfTasks(tenant, [task.id]),
    askingDelivery:
      task === undefined ? undefined : (await store.deliveries.get(tenant, [task.messageId]))[0],
    artifacts: task === undefined ? [] : await store.tasks.artifacts(tenant, task.id),
    parent,
    ...(await loadSameWork(parts, tenant, { draft, sender, recipient, task })),
  };
}

/** A sender that names a task of others learns nothing about it. */
async function assertSeesTask(
  { guard }: LoadParts,
  principal: Principal,
  { taskId }: MessageDraft,
  sender: AgentId,
  task: TaskRecord | undefined,
): Promise<void> {
  const isParty = task !== undefined && (task.requester === sender || task.assignee === sender);
  if (taskId !== undefined && !isParty) {
    throw new RelayError("not_found", `task_id: there is no task ${taskId}`);
  }
  if (!isParty) return;
  const target = { parties: [task.requester, task.assignee], atMs: task.createdAtMs };
  await guard.authorize(principal, "tasks.read", target, `task_id: there is no task ${task.id}`);
}

async function assertSeesParent(
  { guard }: LoadParts,
  principal: Principal,
  parentId: string,
  parent: TaskRecord | undefined,
): Promise<void> {
  const unseen = `parent: there is no task ${parentId}`;
  const parties = parent === undefined ? [] : [parent.requester, parent.assignee];
  await guard.authorize(principal, "tasks.read", { parties, atMs: parent?.createdAtMs }, unseen);
  if (parent === undefined) throw new RelayError("not_found", unseen);
}

/** A client's name for a task must not be the relay's id of another: workers and scopes would confuse them. */
async function assertOwnName(store: RelayStore, tenant: string, { clientTaskId }: TaskNaming): Promise<void> {
  if ((await store.tasks.get(tenant, [clientTaskId]))[0] === undefined) return;
  throw new RelayError("conflict", `id: "${clientTaskId}" is the relay's own name of a task; use a new id`);
}

/** Idempotent work that was done before, or is under way, for the same sender. Other work is never shared. */
async function loadSameWork(
  { store, clock }: LoadParts,
  tenant: string,
  asked: Omit<LoadedMessage, "naming"> & { readonly task: TaskRecord | undefined },
): Promise<Pick<SendRecords, "resultKey" | "cached" | "running">> {
  const { draft, sender, recipient, task } = asked;
  const makesTask = task === undefined && (draft.kind === "request" || draft.kind === "handoff");
  const key = draft.idempotencyKey?.trim() ?? "";
  if (!makesTask || draft.duplicateSafety !== "idempotent" || key === "") {
    return { resultKey: undefined, cached: undefined, running: undefined };
  }
  // Agents of older stores have no key; their ids stay reserved to them.
  const resultKey = digestOf([
    (await publicKeyOf(store, tenant, sender)) ?? sender,
    (await publicKeyOf(store, tenant, recipient)) ?? recipient,
    taskKindOf(draft.given) ?? draft.body,
    key,
  ]);
  // In this order: a task that ends between the two reads has its result cached.
  const running = await store.tasks.unfinishedWithResultKey(tenant, resultKey);
  const cached = await store.tasks.cachedResult(tenant, resultKey, clock.nowMs());
  return { resultKey, cached, running };
}
