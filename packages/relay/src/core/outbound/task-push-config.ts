import { type AgentId, type A2aVersion, GUEST, isTerminal } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import type { EventDraft, EventType } from "../ports/journal.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskPushConfig, TaskPushKey } from "../ports/task-pushes.ts";

/** What its owner says of a configuration. */
export interface TaskPushWish {
  readonly id: string;
  readonly owner: AgentId;
  readonly url: string;
  readonly token: string | null;
  readonly scheme: string | null;
  readonly credentials: string | null;
  readonly dialect: A2aVersion;
}

/**
 * The configuration after its owner has said so. One that takes the place of another goes on where that one was. It is
 * due at once: something may happen to the task before it is written, and whoever looks at it sees that.
 */
export function configAfter(
  before: TaskPushConfig | undefined,
  wish: TaskPushWish,
  task: TaskRecord,
  at: { readonly nowMs: number; readonly afterN: number },
): TaskPushConfig {
  const afterN = before?.afterN ?? at.afterN;
  const isOver = hasNothingBehind(task, afterN);
  return {
    ...wish,
    tenant: task.tenant,
    taskId: task.id,
    state: isOver ? "ended" : "active",
    reason: null,
    afterN,
    attempts: 0,
    givenUp: 0,
    nextAtMs: isOver ? null : at.nowMs,
    createdAtMs: before?.createdAtMs ?? at.nowMs,
    version: before?.version ?? 0,
  };
}

/** Nothing will ever happen to the task that was not told. */
export function hasNothingBehind({ state, updateCount }: TaskRecord, afterN: number): boolean {
  return isTerminal(state) && afterN >= updateCount;
}

/** Whether this is still what a request was sent for; if not, its answer says nothing of it. */
export function isSameConfig(config: TaskPushConfig, sent: TaskPushConfig): boolean {
  return (
    config.state === "active" &&
    config.url === sent.url &&
    config.token === sent.token &&
    config.scheme === sent.scheme &&
    config.credentials === sent.credentials &&
    config.dialect === sent.dialect &&
    config.afterN === sent.afterN &&
    config.attempts === sent.attempts
  );
}

/** Under which name the caller owns what it makes. Operators, who see all of a tenant, share one. */
export function ownerOf(principal: Principal): AgentId {
  return principal.kind === "agent" ? principal.agentId : GUEST;
}

/** Who is called: whatever hangs at one of its addresses may well hang at all of them. */
export function originOf({ url }: Pick<TaskPushConfig, "url">): string {
  return URL.parse(url)?.origin ?? "";
}

export function nameOf({ tenant, taskId, id }: TaskPushKey): string {
  return JSON.stringify([tenant, taskId, id]);
}

/** A fact about where a caller is told of a task. It names the host, and never the URL, which may be a secret. */
export function taskPushEvent(
  type: Extract<EventType, "push.configured" | "push.disabled" | "push.removed">,
  { owner, taskId, id, url }: Pick<TaskPushConfig, "id" | "owner" | "taskId" | "url">,
  by: { readonly actor: string; readonly atMs: number },
  data: Readonly<Record<string, unknown>> = {},
): EventDraft {
  const agentId = owner === GUEST ? null : owner;
  const about = { agentId, messageId: null, taskId, threadId: null };
  return { type, ...by, ...about, data: { config_id: id, host: URL.parse(url)?.host ?? "", ...data } };
}
