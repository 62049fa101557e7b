import { type AgentInterface, isTerminal, type Message } from "@a2a-relay/protocol";
import { combine } from "../mechanisms/commit-retry.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { Identifiers } from "../ports/ids.ts";
import { type FoundAgent, type Outbound, type PushOutcome, RemoteFailure } from "../ports/outbound.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { RemoteAnswer, RemoteTask } from "../ports/remote-tasks.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { fail } from "../rules/delivery-state.ts";
import { isRemote } from "../rules/remote-address.ts";
import { GIVEN_UP_BY_RELAY, undeliveredChanges } from "../rules/undelivered.ts";
import type { AttemptOptions, AttemptReport, PushSender, RecordedAttempt } from "./push-outcome.ts";
import { assertHopsLeft, type RemoteTarget, sendParams } from "./remote-message.ts";
import { messageOf } from "../mechanisms/stored-json.ts";
import { ownedSinceMs } from "../rules/agent-owner.ts";

export interface A2aSenderParts {
  readonly store: RelayStore;
  readonly ids: Identifiers;
  readonly outbound: Outbound;
}

export interface A2aSenderSettings {
  readonly messageTtlMs: number;
}

/** Where a message goes. */
interface SendDestination extends RemoteTarget {
  readonly agent: FoundAgent;
}

/** Of a message that no interface took; it is never called. */
const NOWHERE: AgentInterface = { url: "", binding: "JSONRPC", dialect: "0.3", a2aTenant: null };

/** Sends messages to agents with an A2A endpoint. The remote tasks that they answer with are polled later. */
export class A2aSender implements PushSender {
  readonly #store: RelayStore;
  readonly #ids: Identifiers;
  readonly #messageTtlMs: number;
  readonly #outbound: Outbound;

  constructor(parts: A2aSenderParts, settings: A2aSenderSettings) {
    this.#store = parts.store;
    this.#ids = parts.ids;
    this.#messageTtlMs = settings.messageTtlMs;
    this.#outbound = parts.outbound;
  }

  async attempt(
    endpoint: PushEndpoint,
    { delivery, message }: MailboxMessage,
    { markSent, signal }: AttemptOptions,
  ): Promise<AttemptReport | undefined> {
    const isRepeatable = delivery.duplicateSafety === "idempotent";
    let isMarked = false;
    try {
      const parsed = messageOf(message);
      assertHopsLeft(parsed);
      const to = await this.#destination(endpoint, delivery, signal);
      if (!isRepeatable) {
        isMarked = await markSent();
        if (!isMarked) return undefined;
      }
      return await this.#send(parsed, to, signal);
    } catch (reason) {
      if (!(reason instanceof RemoteFailure)) throw reason;
      const isStopped = signal.aborted && (reason.kind === "stopped" || isRepeatable);
      // A push that is marked as sent needs a recorded outcome, or the next process reports it as unknown.
      if (isStopped && !isMarked) return undefined;
      const outcome = reason instanceof NotYet ? notYet(reason) : outcomeOf(reason, delivery);
      return { ...reason.recorded, outcome };
    }
  }

  /** Records the remote task in the same commit, or fails the delivery when the last attempt failed. */
  async changesAfter(recorded: RecordedAttempt): Promise<Partial<Changes>> {
    const { delivery, push } = recorded;
    if (delivery === undefined) return {};
    const { tenant } = delivery;
    const followed = await this.#remoteTaskChanges(recorded, delivery);
    // A remote agent has no key, so it never reads its mailbox here: the message would stay open for ever.
    const isOver = push.state === "failed" && delivery.state === "available" && isRemote(delivery.agentId);
    return isOver ? combine(tenant, [followed, ...(await this.#givenUp(recorded, delivery))]) : followed;
  }

  async #givenUp(
    { report, nowMs }: RecordedAttempt,
    delivery: DeliveryRecord,
  ): Promise<readonly Partial<Changes>[]> {
    const reason = "reason" in report.outcome ? report.outcome.reason : "it did not arrive";
    const defaults = { ids: this.#ids, nowMs, messageTtlMs: this.#messageTtlMs };
    const dead = fail(delivery, undefined, reason, nowMs);
    return undeliveredChanges(this.#store, defaults, dead, GIVEN_UP_BY_RELAY);
  }

  async #remoteTaskChanges(recorded: RecordedAttempt, delivery: DeliveryRecord): Promise<Partial<Changes>> {
    const { push, report, nowMs } = recorded;
    if (delivery.taskId === null) return {};
    const [task] = await this.#store.tasks.get(delivery.tenant, [delivery.taskId]);
    if (task?.assignee !== delivery.agentId) return {};
    const known = await this.#store.remoteTasks.get(task.tenant, task.id);
    if (report.remote !== undefined) {
      const { at, reply } = report.remote;
      const before = known ?? newRemoteTask(task, delivery, at, nowMs);
      return { remoteTasks: [answered({ ...before, ...at }, delivery, reply, nowMs)] };
    }
    if (push.state !== "failed" || isTerminal(task.state)) return {};
    // The agent did not get the answer to its question: forget its status, so that the next poll records it again.
    if (isFollowUp(delivery) && known !== undefined) {
      return { remoteTasks: [{ ...known, statusDigest: null, nextAtMs: nowMs }] };
    }
    if (report.outcome.kind !== "refused" || isFollowUp(delivery) || isRemote(delivery.agentId)) return {};
    const before = known ?? newRemoteTask(task, delivery, NOWHERE, nowMs);
    return { remoteTasks: [answered(before, delivery, { refused: report.outcome.reason }, nowMs)] };
  }

  /** A follow-up goes to the interface that has the task. */
  async #destination(
    endpoint: PushEndpoint,
    delivery: DeliveryRecord,
    signal: AbortSignal,
  ): Promise<SendDestination> {
    const { tenant, taskId, threadId, sender: requester } = delivery;
    const task = taskId === null ? undefined : (await this.#store.tasks.get(tenant, [taskId]))[0];
    const isItsWork = task?.assignee === endpoint.agentId;
    if (taskId !== null && isItsWork && isFollowUp(delivery)) {
      const known = await this.#store.remoteTasks.get(tenant, taskId);
      if (known?.remoteTaskId == null)
        throw new NotYet("the message that asks for the task has not arrived yet");
      const contextId = known.remoteContextId ?? undefined;
      const agent = { url: endpoint.url, at: interfaceOf(known) };
      return { agent, taskId: known.remoteTaskId, contextId };
    }
    const agent = await this.#outbound.findAgent(endpoint.url, signal);
    const sinceMs = await ownedSinceMs(this.#store, tenant, requester);
    const query = { tenant, agentId: endpoint.agentId, requester, sinceMs, threadId, url: agent.at.url };
    return { agent, contextId: await this.#store.remoteTasks.contextId(query) };
  }

  async #send(message: Message, to: SendDestination, signal: AbortSignal): Promise<AttemptReport> {
    const options = { idempotencyKey: message.id, signal };
    const { recorded, ...remote } = await this.#outbound.sendMessage(
      to.agent,
      sendParams(message, to),
      options,
    );
    return { ...recorded, outcome: { kind: "delivered" }, remote };
  }
}

/** The task's first message has not arrived: retry later, and do not count a failure of the endpoint. */
class NotYet extends RemoteFailure {
  constructor(reason: string) {
    super("failed", reason);
  }
}

function notYet({ reason }: NotYet): PushOutcome {
  return { kind: "refused", reason, retryAfterMs: 0 };
}

/** The outcome for a message that the agent did not take. */
function outcomeOf(
  { kind, reason, retryAfterMs }: RemoteFailure,
  { duplicateSafety }: Pick<DeliveryRecord, "duplicateSafety">,
): PushOutcome {
  if (kind === "refused") return { kind: "refused", reason, retryAfterMs, isFinal: true };
  if (kind === "unknown" && duplicateSafety !== "idempotent") {
    return { kind: "unknown", reason: unknownReason(reason) };
  }
  return { kind: "failed", reason, retryAfterMs };
}

export function unknownReason(reason: string): string {
  return `${reason}; it may have arrived, and is not sent again by itself, as its sender did not call it idempotent`;
}

/** The message belongs to a task and does not start it. */
function isFollowUp({ purpose }: DeliveryRecord): boolean {
  return purpose !== "work";
}

function newRemoteTask(
  { tenant, id: taskId, threadId }: TaskRecord,
  { agentId, sender: requester }: DeliveryRecord,
  at: AgentInterface,
  nowMs: number,
): RemoteTask {
  return {
    tenant,
    taskId,
    agentId,
    requester,
    threadId,
    ...at,
    remoteTaskId: null,
    remoteContextId: null,
    answer: null,
    statusDigest: null,
    changedAtMs: nowMs,
    nextAtMs: nowMs,
    failures: 0,
    misses: 0,
    version: 0,
  };
}

/** The agent may continue with another task than before. A new request resets what is recorded of the old one. */
function answered(
  before: RemoteTask,
  delivery: DeliveryRecord,
  answer: RemoteAnswer,
  nowMs: number,
): RemoteTask {
  const fresh = { answer, changedAtMs: nowMs, nextAtMs: nowMs, failures: 0, misses: 0 };
  const isNew = !isFollowUp(delivery);
  const begun = isNew ? { remoteTaskId: null, remoteContextId: null, statusDigest: null } : {};
  const asked = isNew ? { agentId: delivery.agentId, requester: delivery.sender } : {};
  const next = { ...before, ...begun, ...asked, ...fresh };
  if ("refused" in answer) return next;
  if ("message" in answer)
    return { ...next, remoteContextId: answer.message.contextId ?? next.remoteContextId };
  const { id, contextId } = answer.task;
  return { ...next, remoteTaskId: id, remoteContextId: nonEmpty(contextId) ?? next.remoteContextId };
}

function interfaceOf({ url, binding, dialect, a2aTenant }: RemoteTask): AgentInterface {
  return { url, binding, dialect, a2aTenant };
}

function nonEmpty(text: unknown): string | undefined {
  return typeof text === "string" && text !== "" ? text : undefined;
}
