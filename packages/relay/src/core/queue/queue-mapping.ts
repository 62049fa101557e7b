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

/** The id under which this wire shows a task: the one its requester gave it, where there is one. */
export function shownId(task: Pick<TaskRecord, "id" | "clientId">): string {
  return task.clientId ?? task.id;
}

/** What must say something if it is there at all, in the words that this wire's clients know. */
export function assertTaskTexts({ intent_text, task_kind, idempotency }: QueueTaskInput): void {
  const refuse = (what: string): never => {
    throw new RelayError("invalid_argument", `invalid task: ${what}`);
  };
  if (isBlank(intent_text)) refuse("intent_text must not be empty");
  if (task_kind != null && isBlank(task_kind)) refuse("task_kind must not be empty when present");
  if (idempotency != null && isBlank(idempotency.key)) refuse("idempotency key must not be empty");
}

/** The request that a task is. `parent` is the relay's own id. */
export function toMessage(
  task: QueueTaskInput,
  way: { readonly sender: AgentId; readonly recipient: AgentId; readonly parentId: string | undefined },
): MessageInput {
  return {
    from: way.sender,
    to: way.recipient,
    type: "request",
    body: task.intent_text,
    ...(task.task_kind == null ? {} : { task_kind: task.task_kind }),
    ...(way.parentId === undefined ? {} : { parent: way.parentId }),
    ...(task.deadline_ms == null ? {} : { deadline_ms: task.deadline_ms }),
    ...(task.idempotency == null ? {} : { idempotency: task.idempotency }),
  };
}

/** What makes two sends under one id the same task: all that was said, but for how the agents were called. */
export function taskDigest(task: QueueTaskInput): string {
  const { id: _id, sender: _sender, recipient: _recipient, ...said } = task;
  return digestOf(Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null)));
}

export interface TaskSurroundings {
  readonly sender: QueueAgent;
  readonly recipient: QueueAgent;
  /** Undefined when it has none, or none that is still known. */
  readonly parent: TaskRecord | undefined;
}

/** The work that a message asks for, as this wire tells it. */
export function toTask(
  message: Message,
  delivery: DeliveryRecord,
  task: TaskRecord,
  { sender, recipient, parent }: TaskSurroundings,
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
  const said = textOfParts(all);
  // One plain text is the message's own text, and not in it twice.
  const isPlain = status !== "error" && content.length === 1 && content[0]?.type === "text" && said !== "";
  const parts = content.length === 0 || isPlain ? undefined : all;
  return {
    state,
    resultStatus: status,
    text: status === "error" ? (errorMessage ?? said) : said,
    parts,
    errorMessage,
    digest: endingDigest(state, { status, content, error_message: errorMessage ?? null }),
  };
}

/**
 * A result as this wire tells it, whichever wire it came by. The task may have left already; then its message
 * has to say it all. Rejected and canceled work reads as an error here.
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

/** `ids` has what each message's task is called here. */
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

/** A message of nothing but data still asks for something. */
function intentOf({ body, parts }: Message): string {
  return body === "" && parts !== undefined ? JSON.stringify(parts) : body;
}

function statusOf(message: Message): ResultStatus {
  const told = RESULT_STATUSES.find((status) => status === message["result_status"]);
  if (told !== undefined) return told;
  const state = message["task_state"];
  return state === undefined || state === "completed" ? "ok" : "error";
}

function errorOf(message: Message, status: ResultStatus): string | undefined {
  const told = message["error_message"];
  if (typeof told === "string") return told;
  const isReason = status === "error" && message.parts === undefined && message.body !== "";
  return isReason ? message.body : undefined;
}

/** What was said, else what was made, with whatever the text says beyond it. */
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

/** A part of neither kind, such as a file, is carried whole. */
function toContent(part: Part): QueueContent {
  if (typeof part["text"] === "string") return { type: "text", text: part["text"] };
  return { type: "json", value: "data" in part ? part["data"] : part };
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}
