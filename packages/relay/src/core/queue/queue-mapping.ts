import {
  type QueueRepairOutcome,
  type QueueRepairRequest,
  type QueueRetryReport,
  type QueueTask,
  type QueueTaskInput,
  type QueueTaskEntry,
  type QueueTaskResult,
  type QueueTaskResultInput,
  type AgentId,
  type Artifact,
  type Message,
  type MessageInput,
  type Part,
  type QueueAgent,
  type QueueContent,
  type QueueLease,
  RelayError,
  RESULT_STATUSES,
  type ResultStatus,
  textOfParts,
} from "@a2a-relay/protocol";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { RetryReport } from "../mailboxes/retry-policy.ts";
import { digestOf } from "../rules/digest.ts";
import { taskKindOf } from "../messages/message-draft.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { type Ending, endingDigest } from "../rules/task-result.ts";

/** The task's id on this wire: the one that its requester gave it, else the relay's own. */
export function shownId(task: Pick<TaskRecord, "id" | "clientId">): string {
  return task.clientId ?? task.id;
}

/** Refuses blank texts with the errors that this wire's clients expect. */
export function assertTaskTexts({ intent_text, task_kind, idempotency }: QueueTaskInput): void {
  const refuse = (what: string): never => {
    throw new RelayError("invalid_argument", `invalid task: ${what}`);
  };
  if (isBlank(intent_text)) refuse("intent_text must not be empty");
  if (task_kind != null && isBlank(task_kind)) refuse("task_kind must not be empty when present");
  if (idempotency != null && isBlank(idempotency.key)) refuse("idempotency key must not be empty");
}

/** The request that stands for a task. `parentId` is the relay's own id. */
export function toMessage(
  task: QueueTaskInput,
  parties: { readonly sender: AgentId; readonly recipient: AgentId; readonly parentId: string | undefined },
): MessageInput {
  return {
    from: parties.sender,
    to: parties.recipient,
    type: "request",
    body: task.intent_text,
    ...(task.task_kind == null ? {} : { task_kind: task.task_kind }),
    ...(parties.parentId === undefined ? {} : { parent: parties.parentId }),
    ...(task.deadline_ms == null ? {} : { deadline_ms: task.deadline_ms }),
    ...(task.idempotency == null ? {} : { idempotency: task.idempotency }),
  };
}

/** Two sends with one id are the same task if all members but the names of the agents are equal. */
export function taskDigest(task: QueueTaskInput): string {
  const { id: _id, sender: _sender, recipient: _recipient, ...content } = task;
  return digestOf(Object.fromEntries(Object.entries(content).filter(([, value]) => value !== null)));
}

export interface TaskParties {
  readonly sender: QueueAgent;
  readonly recipient: QueueAgent;
  /** Undefined without a parent, or when retention has removed it. */
  readonly parent: TaskRecord | undefined;
}

/** The work that a message asks for, in this wire's form. */
export function toTask(
  message: Message,
  delivery: DeliveryRecord,
  task: TaskRecord,
  { sender, recipient, parent }: TaskParties,
): QueueTask {
  const kind = taskKindOf(message);
  const parentId = parent === undefined ? task.parentId : shownId(parent);
  const { duplicateSafety, idempotencyKey } = delivery;
  return {
    id: shownId(task),
    sender,
    recipient,
    intent_text: intentOf(message),
    ...(kind === undefined ? {} : { task_kind: kind }),
    ...(parentId === null ? {} : { parent: parentId }),
    ...(task.deadlineMs === null ? {} : { deadline_ms: task.deadlineMs }),
    ...(idempotencyKey === null
      ? {}
      : { idempotency: { duplicate_safety: duplicateSafety, key: idempotencyKey } }),
  };
}

export function toLease(delivery: DeliveryRecord): QueueLease {
  return {
    lease_id: delivery.leaseId ?? "",
    attempt: delivery.attempt,
    leased_at_ms: delivery.leasedAtMs ?? 0,
    message_id: delivery.messageId,
    relay_task_id: delivery.taskId ?? "",
  };
}

export function toEntry(delivery: DeliveryRecord, task: QueueTask): QueueTaskEntry {
  const { attempt, leaseId, leasedAtMs } = delivery;
  if (delivery.state !== "leased" || leaseId === null || leasedAtMs === null) {
    return { state: "queued", task, attempt };
  }
  return {
    state: "in_flight",
    task,
    lease_id: leaseId,
    leased_to: task.recipient,
    leased_at_ms: leasedAtMs,
    attempt,
  };
}

/** How a posted result ends its task. */
export function toEnding(result: QueueTaskResultInput): Omit<Ending, "actor" | "sender"> {
  const { status } = result;
  const content = result.content ?? [];
  const errorMessage = result.error_message ?? undefined;
  const state = status === "error" ? "failed" : "completed";
  const all = content.map(toPart);
  const text = textOfParts(all);
  // A single text is the body of the message, not also a part.
  const isPlain = status !== "error" && content.length === 1 && content[0]?.type === "text" && text !== "";
  const parts = content.length === 0 || isPlain ? undefined : all;
  return {
    state,
    resultStatus: status,
    text: status === "error" ? (errorMessage ?? text) : text,
    parts,
    errorMessage,
    digest: endingDigest(state, { status, content, error_message: errorMessage ?? null }),
  };
}

/**
 * A result in this wire's form, from any wire. Retention may have removed the task; then the message alone is used.
 * Rejected and canceled tasks are errors here.
 */
export function toResult(
  message: Message,
  task: TaskRecord | undefined,
  artifacts: readonly Artifact[],
): QueueTaskResult {
  const status = task?.resultStatus ?? statusOf(message);
  const errorMessage = errorOf(message, status);
  return {
    task_id: task === undefined ? (message.task_id ?? "") : shownId(task),
    status,
    content: contentOf(message, status, artifacts),
    ...(errorMessage === undefined ? {} : { error_message: errorMessage }),
  };
}

export function toOutcome(
  taskId: string,
  command: QueueRepairRequest["command"],
  attempt: number,
): QueueRepairOutcome {
  if (command.action === "requeue") return { task_id: taskId, action: "requeued", state: "queued", attempt };
  return {
    task_id: taskId,
    action: "forced_error",
    state: "result_pending",
    attempt,
    result: { task_id: taskId, status: "error", content: [], error_message: command.message },
  };
}

/** `ids` maps message ids to the ids of their tasks on this wire. */
export function toRetryReport(report: RetryReport, ids: ReadonlyMap<string, string>): QueueRetryReport {
  const idOf = ({ messageId }: DeliveryRecord): string => ids.get(messageId) ?? messageId;
  return {
    policy: report.policy,
    considered: report.considered,
    requeued: report.requeued.map((delivery) => ({
      task_id: idOf(delivery),
      lease_id: delivery.leaseId ?? "",
      attempt: delivery.attempt,
      idempotency_key: delivery.idempotencyKey ?? "",
    })),
    skipped: report.skipped.map(({ delivery, reason, leaseAgeMs }) => ({
      task_id: idOf(delivery),
      reason,
      attempt: delivery.attempt,
      lease_age_ms: leaseAgeMs,
    })),
  };
}

/** A message without text is described by its parts. */
function intentOf({ body, parts }: Message): string {
  return body === "" && parts !== undefined ? JSON.stringify(parts) : body;
}

function statusOf(message: Message): ResultStatus {
  const stated = RESULT_STATUSES.find((status) => status === message["result_status"]);
  if (stated !== undefined) return stated;
  const state = message["task_state"];
  return state === undefined || state === "completed" ? "ok" : "error";
}

function errorOf(message: Message, status: ResultStatus): string | undefined {
  const stated = message["error_message"];
  if (typeof stated === "string") return stated;
  const isReason = status === "error" && message.parts === undefined && message.body !== "";
  return isReason ? message.body : undefined;
}

/** The parts of the message, else its text and the parts of the artifacts; a text that repeats them is left out. */
function contentOf(
  { body, parts }: Message,
  status: ResultStatus,
  artifacts: readonly Artifact[],
): readonly QueueContent[] {
  if (parts !== undefined) return parts.map(toContent);
  const made = artifacts.flatMap((artifact) => artifact.parts);
  const isNews = status !== "error" && body !== "" && (made.length === 0 || body !== textOfParts(made));
  return [...(isNews ? [{ type: "text", text: body } as const] : []), ...made.map(toContent)];
}

function toPart(content: QueueContent): Part {
  return content.type === "text"
    ? { kind: "text", text: content.text }
    : { kind: "data", data: content.value };
}

/** Any other part, such as a file, becomes JSON as a whole. */
function toContent(part: Part): QueueContent {
  if (typeof part["text"] === "string") return { type: "text", text: part["text"] };
  return { type: "json", value: "data" in part ? part["data"] : part };
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}
