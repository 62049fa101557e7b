import { A2aError, isTerminal, LIMITS, type Message } from "@a2a-relay/protocol";
import { combine } from "../mechanisms/commit-retry.ts";
import type { Clock } from "../ports/clock.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { Outbound } from "../ports/outbound-http.ts";
import type { PushEndpoint, PushOutcome } from "../ports/pushes.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { RemoteAnswer, RemoteInterface, RemoteTask } from "../ports/remote-tasks.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { fail } from "../rules/delivery-state.ts";
import { isRemote } from "../rules/remote-address.ts";
import { GIVEN_UP_BY_RELAY, undeliveredChanges } from "../rules/undelivered.ts";
import type { AttemptOptions, AttemptReport, PushSender, RecordedAttempt } from "./push-outcome.ts";
import {
  outcomeOf,
  RemoteCalls,
  RemoteFailure,
  type RemoteResult,
  type RemoteSettings,
} from "./remote-calls.ts";
import { RemoteCards } from "./remote-cards.ts";
import { guessedInterface, readAnswer } from "./remote-interface.ts";
import { assertHopsLeft, type RemoteTarget, sendParams } from "./remote-message.ts";
import { headerText } from "./http-push.ts";

export interface A2aSenderParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly outbound: Outbound;
}

export interface A2aSenderSettings extends RemoteSettings {
  readonly messageTtlMs: number;
}

/** Where a message goes. */
interface SendDestination extends RemoteTarget {
  readonly at: RemoteInterface;
  readonly isGuessed: boolean;
}

/** Sends messages to agents with an A2A endpoint. The remote tasks that they answer with are polled later. */
export class A2aSender implements PushSender {
  readonly #store: RelayStore;
  readonly #ids: Identifiers;
  readonly #messageTtlMs: number;
  readonly #calls: RemoteCalls;
  readonly #cards: RemoteCards;

  constructor(parts: A2aSenderParts, settings: A2aSenderSettings) {
    this.#store = parts.store;
    this.#ids = parts.ids;
    this.#messageTtlMs = settings.messageTtlMs;
    this.#calls = new RemoteCalls(parts.outbound, settings);
    this.#cards = new RemoteCards(this.#calls, parts.clock);
  }

  async attempt(
    endpoint: PushEndpoint,
    { delivery, message }: MailboxMessage,
    { markSent, signal }: AttemptOptions,
  ): Promise<AttemptReport | undefined> {
    const isRepeatable = delivery.duplicateSafety === "idempotent";
    let isMarked = false;
    try {
      const parsed = JSON.parse(message.json) as Message;
      assertHopsLeft(parsed);
      const to = await this.#destination(endpoint, delivery, signal);
      if (!isRepeatable) {
        isMarked = await markSent();
        if (!isMarked) return undefined;
      }
      return await this.#send(endpoint, parsed, to, signal);
    } catch (reason) {
      if (!(reason instanceof RemoteFailure)) throw reason;
      if (reason.kind === "refused") this.#cards.forget(endpoint.url);
      const isStopped = signal.aborted && (reason.kind === "stopped" || isRepeatable);
      // A push that is marked as sent needs a recorded outcome, or the next process reports it as unknown.
      if (isStopped && !isMarked) return undefined;
      const { answer, message: error } = reason;
      const outcome = reason instanceof NotYet ? notYet(reason) : outcomeOf(reason, delivery);
      if (answer === undefined) return { status: null, error, answer: null, outcome };
      return { status: answer.status, error: null, answer: excerpt(answer.text), outcome };
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
    const task = await this.#store.tasks.get(delivery.tenant, delivery.taskId);
    if (task?.assignee !== delivery.agentId) return {};
    const known = await this.#store.remoteTasks.get(task.tenant, task.id);
    if (report.remote !== undefined) {
      const { at, answer } = report.remote;
      const before = known ?? newRemoteTask(task, delivery, at, nowMs);
      return { remoteTasks: [answered({ ...before, ...at }, delivery, answer, nowMs)] };
    }
    if (push.state !== "failed" || isTerminal(task.state)) return {};
    // The agent did not get the answer to its question: forget its status, so that the next poll records it again.
    if (isFollowUp(delivery) && known !== undefined) {
      return { remoteTasks: [{ ...known, statusDigest: null, nextAtMs: nowMs }] };
    }
    if (report.outcome.kind !== "refused" || isFollowUp(delivery) || isRemote(delivery.agentId)) return {};
    const before = known ?? newRemoteTask(task, delivery, guessedInterface(""), nowMs);
    return { remoteTasks: [answered(before, delivery, { refused: report.outcome.reason }, nowMs)] };
  }

  /** A follow-up goes to the interface that has the task. */
  async #destination(
    endpoint: PushEndpoint,
    delivery: DeliveryRecord,
    signal: AbortSignal,
  ): Promise<SendDestination> {
    const { tenant, taskId, threadId, sender: requester } = delivery;
    const task = taskId === null ? undefined : await this.#store.tasks.get(tenant, taskId);
    const isItsWork = task?.assignee === endpoint.agentId;
    if (taskId !== null && isItsWork && isFollowUp(delivery)) {
      const known = await this.#store.remoteTasks.get(tenant, taskId);
      if (known?.remoteTaskId == null)
        throw new NotYet("the message that asks for the task has not arrived yet");
      const contextId = known.remoteContextId ?? undefined;
      return { at: interfaceOf(known), isGuessed: false, taskId: known.remoteTaskId, contextId };
    }
    const { at, isGuessed } = await this.#cards.find(endpoint.url, signal);
    const sinceMs = await this.#store.agents.othersBeforeMs(tenant, requester);
    const query = { tenant, agentId: endpoint.agentId, requester, sinceMs, threadId, url: at.url };
    return { at, isGuessed, contextId: await this.#store.remoteTasks.contextId(query) };
  }

  async #send(
    endpoint: PushEndpoint,
    message: Message,
    to: SendDestination,
    signal: AbortSignal,
  ): Promise<AttemptReport> {
    const params = sendParams(message, to);
    const options = { idempotencyKey: headerText(message.id), signal };
    const ask = (at: RemoteInterface): Promise<RemoteResult> => this.#calls.call(at, "send", params, options);
    try {
      return reportOf(to.at, await ask(to.at));
    } catch (reason) {
      // The version was a guess, and an agent that does not know the method has done nothing.
      if (!to.isGuessed || !isUnknownMethod(reason)) throw reason;
      const at = { ...to.at, dialect: "1.0" } as const;
      const report = reportOf(at, await ask(at));
      this.#cards.learn(endpoint.url, at);
      return report;
    }
  }
}

/** The task's first message has not arrived: retry later, and do not count a failure of the endpoint. */
class NotYet extends RemoteFailure {
  constructor(reason: string) {
    super("failed", reason);
  }
}

function notYet({ reason }: NotYet): PushOutcome {
  return { kind: "refused", reason, retryAfter: undefined };
}

function reportOf(at: RemoteInterface, { result, answer }: RemoteResult): AttemptReport {
  const reply = readAnswer(result);
  if (reply === undefined) {
    throw new RemoteFailure("refused", "the agent answered with neither a task nor a message", { answer });
  }
  const text = excerpt(answer.text);
  return {
    status: answer.status,
    error: null,
    answer: text,
    outcome: { kind: "delivered" },
    remote: { at, answer: reply },
  };
}

/** The message belongs to a task and does not start it. */
function isFollowUp({ purpose }: DeliveryRecord): boolean {
  return purpose !== "work";
}

function newRemoteTask(
  { tenant, id: taskId, threadId }: TaskRecord,
  { agentId, sender: requester }: DeliveryRecord,
  at: RemoteInterface,
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

function interfaceOf({ url, binding, dialect, a2aTenant }: RemoteTask): RemoteInterface {
  return { url, binding, dialect, a2aTenant };
}

function nonEmpty(text: unknown): string | undefined {
  return typeof text === "string" && text !== "" ? text : undefined;
}

function isUnknownMethod(reason: unknown): boolean {
  if (!(reason instanceof RemoteFailure) || !(reason.error instanceof A2aError)) return false;
  return ["MethodNotFound", "VersionNotSupported"].includes(reason.error.a2a);
}

function excerpt(text: string): string {
  const bytes = Buffer.from(text.slice(0, LIMITS.pushAnswerBytesMax)).subarray(0, LIMITS.pushAnswerBytesMax);
  // `stream` makes the decoder leave out a character that is cut.
  return new TextDecoder().decode(bytes, { stream: true });
}
