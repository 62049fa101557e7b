import { isTerminal, RelayError, type TaskState } from "@a2a-relay/protocol";
import { combine } from "../mechanisms/commit-retry.ts";
import type { EventDraft } from "../ports/journal.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { acknowledge } from "../rules/delivery-state.ts";
import {
  acknowledgeWork,
  assertHoldsTask,
  assertLeaseNotRevoked,
  deliveryEvent,
  taskEvent,
  unreadFollowUps,
  workDeliveries,
} from "../rules/task-changes.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import {
  endedTask,
  endingDigest,
  endingEvent,
  cachedResultOf,
  STATUS_TEXT_CHARS,
} from "../rules/task-result.ts";
import { replayReason, replayResult } from "../rules/shared-work.ts";
import { assertInTime, assertUnfinished, moveTask } from "../rules/task-state.ts";
import { saidBy, tell } from "../rules/task-update.ts";
import { answerDigestOf } from "./message-draft.ts";
import type { Effect, SendInput } from "./decide-send.ts";

const QUIET_KINDS: ReadonlySet<string> = new Set(["status", "heartbeat"]);

/** Decides by kind and by who writes what a message does to a task. */
export function effectOf(input: SendInput, threadId: string): Effect {
  const { draft, task, sender } = input;
  if (draft.given.decision !== undefined) return decideProposal(input);
  if (task === undefined) {
    return draft.kind === "request" || draft.kind === "handoff" ? newTask(input, threadId) : plain(input);
  }
  if (sender === task.assignee) return fromAssignee(input, task);
  if (sender === task.requester) {
    // A reply to a result is conversation: the task is over, the thread goes on.
    const isOver = isTerminal(task.state) && draft.taskId === undefined && draft.kind !== "handoff";
    return isOver ? { ...plain(input), taskId: undefined } : followUp(input, task);
  }
  // A sender that only names a task must not learn about it; one that has a message of it knows it already.
  if (draft.taskId !== undefined) {
    throw new RelayError("not_found", `task_id: there is no task ${draft.taskId}`);
  }
  throw new RelayError(
    "permission_denied",
    `task_id: task ${task.id} is between ${task.requester} and ${task.assignee}`,
  );
}

/** The state that an assignee's message puts its task into, or undefined when it changes nothing. */
export function answerState(input: SendInput): TaskState | undefined {
  const { draft, task, sender } = input;
  if (task === undefined || sender !== task.assignee) return undefined;
  if (draft.kind === "reply") return draft.given.needs_reply === true ? "input-required" : "completed";
  return draft.kind === "status" ? draft.given.task_state : undefined;
}

/** What a repeated answer is compared by. */
export function answerDigest(input: SendInput): string | undefined {
  const state = answerState(input);
  return state !== undefined && isTerminal(state)
    ? endingDigest(state, answerDigestOf(input.draft))
    : undefined;
}

function plain(input: SendInput): Effect {
  const { draft, task } = input;
  return {
    taskId: task?.id,
    purpose: "mail",
    quiet: QUIET_KINDS.has(draft.kind),
    reservedFor: undefined,
    changes: { events: repliedEvents(input) },
  };
}

function newTask(input: SendInput, threadId: string): Effect {
  const { draft, defaults } = input;
  const { nowMs } = defaults;
  if (draft.deadlineMs !== undefined && draft.deadlineMs <= nowMs) {
    throw new RelayError("invalid_argument", `deadline_ms: ${draft.deadlineMs} has already passed`);
  }
  const task: TaskRecord = {
    tenant: input.tenant,
    id: defaults.ids.task(),
    requester: input.sender,
    assignee: input.recipient,
    state: "submitted",
    threadId,
    messageId: input.messageId,
    subject: draft.subject,
    clientId: input.clientTaskId ?? null,
    resultKey: input.resultKey ?? null,
    isWaiting: false,
    parentId: input.parent?.id ?? null,
    deadlineMs: draft.deadlineMs ?? null,
    statusText: null,
    resultStatus: null,
    resultMessageId: null,
    resultDigest: null,
    handoffs: [],
    firstMessageId: null,
    askedOf: input.askedOf ?? null,
    isPlain: false,
    updateCount: 0,
    updateBytes: 0,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    version: 0,
  };
  return {
    taskId: task.id,
    purpose: "work",
    quiet: false,
    reservedFor: undefined,
    ...sharedWorkOf(input, task),
  };
}

/** The same work is not done twice: a cached result answers it, and a running task holds it. */
function sharedWorkOf(
  { cached, running, defaults }: SendInput,
  task: TaskRecord,
): Pick<Effect, "changes" | "heldFor" | "withdrawn"> {
  if (cached !== undefined) {
    const { changes } = replayResult(task, cached, defaults, true);
    return { withdrawn: replayReason(cached), changes };
  }
  if (running === undefined) return { changes: { tasks: [task] } };
  return { heldFor: running.id, changes: { tasks: [{ ...task, isWaiting: true }] } };
}

function fromAssignee(input: SendInput, task: TaskRecord): Effect {
  const { draft, recipient } = input;
  if (draft.kind === "handoff") return handOff(input, task);
  if (draft.kind === "request") {
    throw new RelayError(
      "invalid_argument",
      `task_id: ${task.id} is yours to work on; pass it on with a handoff, or ask anew with parent`,
    );
  }
  const state = answerState(input);
  if (state === undefined) return plain(input);
  if (recipient !== task.requester) {
    throw new RelayError("invalid_argument", `to: an answer to task ${task.id} goes to ${task.requester}`);
  }
  return answer(input, task, state);
}

function answer(input: SendInput, task: TaskRecord, state: TaskState): Effect {
  const { draft, sender, messageId, defaults, taskDeliveries } = input;
  const { nowMs } = defaults;
  assertLeaseNotRevoked(input.askingDelivery, draft.leaseId);
  assertUnfinished(task);
  assertInTime(task, nowMs);
  if (state === "submitted" || state === "canceled") {
    throw new RelayError("invalid_argument", `task_state: the agent that works cannot set ${state}`);
  }
  const deliveries = workDeliveries(task, taskDeliveries);
  assertHoldsTask(deliveries, input.askingDelivery, draft.leaseId);
  const quiet = isTerminal(state) || draft.kind === "status";
  const purpose = isTerminal(state) ? ("result" as const) : ("mail" as const);
  const base = { taskId: task.id, purpose, quiet, reservedFor: undefined };
  if (!isTerminal(state)) {
    const moved = { ...moveTask(task, state, nowMs), statusText: shortText(draft.body) };
    const told = tell(moved, [{ kind: "status", state, ...saidBy(saidIn(input)) }], nowMs);
    const events = [taskEvent(told.task, sender, { message_id: messageId })];
    return { ...base, changes: { ...told.changes, tasks: [told.task], events } };
  }
  const ending = {
    state,
    resultStatus: state === "completed" ? ("ok" as const) : ("error" as const),
    text: draft.body,
    digest: endingDigest(state, answerDigestOf(draft)),
    isPlain: state === "completed" && draft.given.plain === true,
    actor: sender,
  };
  const { task: ended, changes: told } = endedTask(task, ending, saidIn(input), nowMs);
  const content = { text: draft.body, parts: draft.given.parts };
  return {
    ...base,
    changes: combine(task.tenant, [
      acknowledgeWork(task, deliveries, sender, nowMs),
      cachedResultOf(ended, content, input.artifacts),
      { ...told, tasks: [ended], events: [endingEvent(ended, ending, input.artifacts)] },
    ]),
  };
}

/** What an answer says, as followers of the task see it. */
function saidIn({ draft, messageId }: SendInput): Parameters<typeof endedTask>[2] {
  const { parts, a2a_message: a2aMessage } = draft.given;
  return { text: draft.body, parts, messageId, a2aMessage };
}

/** The requester adds to a task: the message is reserved for the worker that holds it. */
function followUp(input: SendInput, task: TaskRecord): Effect {
  const { draft, sender, recipient, defaults, taskDeliveries } = input;
  if (draft.kind === "status" && draft.given.task_state !== undefined) {
    throw new RelayError(
      "invalid_argument",
      `task_state: only ${task.assignee}, who works on it, reports on task ${task.id}; cancel it with POST /tasks/{id}/cancel`,
    );
  }
  if (draft.kind === "handoff") {
    throw new RelayError(
      "permission_denied",
      `only ${task.assignee}, who works on task ${task.id}, hands it over`,
    );
  }
  assertUnfinished(task);
  assertInTime(task, defaults.nowMs);
  if (recipient !== task.assignee) {
    throw new RelayError("invalid_argument", `to: task ${task.id} is with ${task.assignee} now`);
  }
  const holder = workDeliveries(task, taskDeliveries).find((delivery) => delivery.state === "leased");
  const waiting = task.state === "input-required" || task.state === "auth-required";
  const { nowMs } = defaults;
  // Written also where nothing changes: an end, a handoff or a requeue meanwhile is then a clash.
  const next = waiting ? moveTask(task, "working", nowMs) : { ...task, updatedAtMs: nowMs };
  const events = waiting ? [taskEvent(next, sender, {})] : [];
  const added = { kind: "message", messageId: input.messageId } as const;
  const resumed = { kind: "status", state: "working" } as const;
  const told = tell(next, waiting ? [added, resumed] : [added], nowMs);
  return {
    taskId: task.id,
    purpose: "mail",
    quiet: QUIET_KINDS.has(draft.kind),
    reservedFor: holder?.worker ?? undefined,
    changes: {
      ...told.changes,
      tasks: [told.task],
      deliveries: holder === undefined ? [] : [holder],
      events: [...repliedEvents(input), ...events],
    },
  };
}

/** Moves the task to another agent; the requester stays and the chain of handoffs is recorded. */
function handOff(input: SendInput, task: TaskRecord): Effect {
  const { sender, recipient, messageId, defaults, taskDeliveries, draft } = input;
  const { nowMs } = defaults;
  if (recipient === task.requester) {
    throw new RelayError("invalid_argument", `to: ${recipient} asked for task ${task.id}; reject it instead`);
  }
  assertLeaseNotRevoked(input.askingDelivery, draft.leaseId);
  assertUnfinished(task);
  assertInTime(task, nowMs);
  const submitted = moveTask(task, "submitted", nowMs);
  const deliveries = workDeliveries(task, taskDeliveries);
  assertHoldsTask(deliveries, input.askingDelivery, draft.leaseId);
  assertAllRead(task, deliveries);
  const step = { from: sender, to: recipient, message_id: messageId, at: new Date(nowMs).toISOString() };
  const moved: TaskRecord = {
    ...submitted,
    assignee: recipient,
    messageId,
    statusText: null,
    handoffs: [...task.handoffs, step],
    firstMessageId: task.firstMessageId ?? task.messageId,
  };
  const told = tell(moved, [{ kind: "status", state: "submitted" }], nowMs);
  const event: EventDraft = {
    ...taskEvent(moved, sender, { from: sender, to: recipient, new_message_id: messageId }),
    messageId: task.messageId,
  };
  return {
    taskId: task.id,
    purpose: "work",
    quiet: false,
    reservedFor: undefined,
    changes: combine(task.tenant, [
      acknowledgeWork(task, deliveries, sender, nowMs),
      { ...told.changes, tasks: [told.task], events: [event] },
    ]),
  };
}

/** The next agent gets only the handoff, so its writer must have read everything else. */
function assertAllRead(task: TaskRecord, deliveries: readonly DeliveryRecord[]): void {
  const unread = unreadFollowUps(task, deliveries).map(({ messageId }) => messageId);
  if (unread.length === 0) return;
  throw new RelayError(
    "wrong_state",
    `task ${task.id} has messages that you have not read: ${unread.join(", ")}; read them before you hand the task over`,
    { details: { message_ids: unread } },
  );
}

/** The recipient of a proposed memory accepts or declines it; this message tells the proposer. */
function decideProposal(input: SendInput): Effect {
  const { original, originalDelivery, sender, draft, defaults } = input;
  if (original?.kind !== "memory" || original.recipient !== sender || originalDelivery === undefined) {
    throw new RelayError(
      "invalid_argument",
      "decision: reply_to must name a memory that was proposed to you",
    );
  }
  const type =
    draft.given.decision === "accepted" ? "message.proposal_accepted" : "message.proposal_declined";
  const settled = acknowledge(originalDelivery, draft.leaseId, defaults.nowMs);
  const event = deliveryEvent(type, originalDelivery, sender, defaults.nowMs, {});
  const acknowledged =
    settled === undefined ? [] : [deliveryEvent("message.acknowledged", settled, sender, defaults.nowMs, {})];
  return {
    taskId: undefined,
    purpose: "mail",
    quiet: true,
    reservedFor: undefined,
    changes: { deliveries: settled === undefined ? [] : [settled], events: [...acknowledged, event] },
  };
}

/** The answered message's receipts say that it was replied to. */
function repliedEvents(input: SendInput): readonly EventDraft[] {
  const { draft, original, sender, defaults } = input;
  if (draft.kind !== "reply" || original === undefined || original.recipient !== sender) return [];
  return [
    {
      type: "message.replied",
      atMs: defaults.nowMs,
      actor: sender,
      agentId: original.sender,
      messageId: original.id,
      taskId: original.taskId,
      threadId: original.threadId,
      data: { reply_id: input.messageId },
    },
  ];
}

function shortText(text: string): string | null {
  return text === "" ? null : text.slice(0, STATUS_TEXT_CHARS).toWellFormed();
}
