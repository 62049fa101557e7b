import {
  type Artifact,
  GUEST,
  isTerminal,
  POSTMASTER,
  type TaskArtifactRequest,
  type TaskStatusRequest,
  type TaskView,
  textOfParts,
} from "@a2a-relay/protocol";
import type { GatePass } from "../access/capability-gate.ts";
import { combine, type Decision } from "../mechanisms/commit-retry.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { Changes } from "../ports/relay-store.ts";
import type { ArtifactRecord, ArtifactStep, StatusStep, TaskRecord } from "../ports/tasks.ts";
import { canceledNotice, type MessageDefaults } from "../rules/notices.ts";
import {
  acknowledgeWork,
  assertHoldsTask,
  assertLeaseNotRevoked,
  taskEvent,
  workDeliveries,
} from "../rules/task-changes.ts";
import { askRequester, type Ending, endingDigest, endTask, STATUS_TEXT_CHARS } from "../rules/task-result.ts";
import { assertInTime, assertUnfinished, moveTask } from "../rules/task-state.ts";
import { saidBy, tell, tellEnd, wholeArtifact } from "../rules/task-update.ts";
import { assertArtifactBytes, putArtifact, withArtifacts } from "./artifacts.ts";
import { viewTask } from "./task-view.ts";

/** The records that a worker's change of a task depends on. */
export interface TaskWork {
  readonly task: TaskRecord;
  /** All open deliveries of messages about the task. */
  readonly openDeliveries: readonly DeliveryRecord[];
  /** The delivery of the message that asked for the work, open or settled. */
  readonly requestDelivery: DeliveryRecord | undefined;
  readonly artifacts: readonly Artifact[];
  /** The lease that the caller names. */
  readonly leaseId: string | undefined;
  /** What the capability check adds to the commit. */
  readonly pass: GatePass;
  readonly defaults: MessageDefaults;
}

/** An ending as its caller describes it, before the task says who sends the result. */
export type RequestedEnding = Omit<Ending, "actor" | "sender">;

/** A question also becomes a message to the requester, who must read it to answer; a guest has no mailbox. */
export function decideStatus(work: TaskWork, request: TaskStatusRequest): Decision<TaskView> {
  workedDeliveries(work);
  const { task, artifacts, pass, defaults } = work;
  const { state, parts } = request;
  const text = request.text ?? textOfParts(parts ?? []);
  const statusText = text === "" ? null : text.slice(0, STATUS_TEXT_CHARS).toWellFormed();
  const moved = { ...moveTask(task, state, defaults.nowMs), statusText };
  const isQuestion = state !== "working" && task.requester !== GUEST;
  const question = isQuestion ? askRequester(moved, { text, parts }, defaults) : undefined;
  const updated = tell(moved, [statusStep(request, text, question?.message.id)], defaults.nowMs);
  const changes = {
    ...updated.changes,
    tasks: [updated.task],
    events: [taskEvent(moved, task.assignee, {})],
  };
  return {
    changes: combine(task.tenant, [pass, changes, question?.changes ?? {}]),
    answer: viewTask(updated.task, artifacts),
  };
}

/** Artifacts have no events of their own: the journal gets their digest with the end of the task. */
export function decideArtifact(
  work: TaskWork,
  request: TaskArtifactRequest,
  artifact: Artifact,
): Decision<TaskView> {
  workedDeliveries(work);
  const { task, pass, defaults } = work;
  const put = putArtifact(work.artifacts, artifact, request.append === true);
  const touched = { ...task, updatedAtMs: defaults.nowMs };
  const updated = tell(touched, [artifactStep(request, artifact)], defaults.nowMs);
  const artifacts = withArtifacts(work.artifacts, [put]);
  assertArtifactBytes(artifacts);
  const changes = { ...updated.changes, tasks: [updated.task], artifacts: artifactRecords(task, [put]) };
  return { changes: combine(task.tenant, [pass, changes]), answer: viewTask(updated.task, artifacts) };
}

/** The same ending was accepted before, so its caller gets the same answer again. */
export function isRepeatedEnding(task: TaskRecord, { state, digest }: RequestedEnding): boolean {
  return isTerminal(task.state) && task.state === state && task.resultDigest === digest;
}

/** A task accepts one ending. It settles all open deliveries of the work in the same commit. */
export function decideEnding(
  work: TaskWork,
  requested: RequestedEnding,
  added: readonly Artifact[],
  requesterIsRegistered: boolean,
): Decision<TaskView> {
  const deliveries = workedDeliveries(work);
  const { task, pass, defaults } = work;
  const put: Artifact[] = [];
  for (const each of added) put.push(putArtifact(withArtifacts(work.artifacts, put), each, false));
  const artifacts = withArtifacts(work.artifacts, put);
  if (put.length > 0) assertArtifactBytes(artifacts);
  const ending: Ending = { ...requested, actor: task.assignee, sender: task.assignee };
  const updated = tellEnd(task, put.map(wholeArtifact), defaults.nowMs);
  const ended = endTask(updated.task, ending, defaults, requesterIsRegistered, artifacts);
  const changes = combine(task.tenant, [
    pass,
    acknowledgeWork(task, deliveries, task.assignee, defaults.nowMs),
    updated.changes,
    ended.changes,
    { artifacts: artifactRecords(task, put) },
  ]);
  return { changes, answer: viewTask(ended.task, artifacts) };
}

/** The records that a cancellation depends on. */
export interface CancelWork {
  readonly task: TaskRecord;
  readonly artifacts: readonly Artifact[];
  /** Open deliveries of the agent that works on it, which are `withdrawn`. */
  readonly deliveries: readonly DeliveryRecord[];
  readonly withdrawn: readonly Partial<Changes>[];
  readonly requesterIsRegistered: boolean;
  readonly actor: string;
  readonly defaults: MessageDefaults;
}

/** Final at once: the relay withdraws open deliveries and notifies the worker that holds a lease. */
export function decideCancel(work: CancelWork, reason: string): Decision<TaskView> {
  const { task, artifacts, deliveries, defaults } = work;
  assertUnfinished(task);
  const ending: Ending = {
    state: "canceled",
    resultStatus: "error",
    text: reason,
    parts: undefined,
    digest: endingDigest("canceled", {}),
    actor: work.actor,
    sender: POSTMASTER,
  };
  const ended = endTask(task, ending, defaults, work.requesterIsRegistered, artifacts);
  const isLeased = deliveries.some(({ state }) => state === "leased");
  const notice = isLeased ? canceledNotice(defaults, task, reason).changes : {};
  return {
    changes: combine(task.tenant, [...work.withdrawn, ended.changes, notice]),
    answer: viewTask(ended.task, artifacts),
  };
}

/** The open deliveries of the work, if the task can be worked on now and under the caller's lease. */
function workedDeliveries(work: TaskWork): readonly DeliveryRecord[] {
  const { task, requestDelivery, leaseId, defaults } = work;
  assertLeaseNotRevoked(requestDelivery, leaseId);
  assertUnfinished(task);
  assertInTime(task, defaults.nowMs);
  const deliveries = workDeliveries(task, work.openDeliveries);
  assertHoldsTask(deliveries, requestDelivery, leaseId);
  return deliveries;
}

function statusStep(
  { state, parts, metadata, a2a_message: a2aMessage }: TaskStatusRequest,
  text: string,
  messageId: string | undefined,
): StatusStep {
  const said = saidBy({ text, parts, a2aMessage, messageId });
  return { kind: "status", state, ...said, ...(metadata === undefined ? {} : { metadata }) };
}

/** A chunk that is appended is the last one only if it says so; any other artifact is, unless it says otherwise. */
function artifactStep(
  { append = false, last_chunk: lastChunk = !append, metadata }: TaskArtifactRequest,
  artifact: Artifact,
): ArtifactStep {
  return { kind: "artifact", artifact, append, lastChunk, ...(metadata === undefined ? {} : { metadata }) };
}

function artifactRecords(
  { tenant, id: taskId }: TaskRecord,
  artifacts: readonly Artifact[],
): readonly ArtifactRecord[] {
  return artifacts.map((artifact) => ({ tenant, taskId, artifact }));
}
