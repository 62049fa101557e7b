import {
  A2aError,
  type A2aMessage,
  type A2aTask,
  isTerminal,
  LIMITS,
  type Message,
} from "@a2a-relay/protocol";
import { isRemote } from "../rules/remote-address.ts";
import type { Clock } from "../ports/clock.ts";
import { combine } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { Outbound } from "../ports/outbound-http.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import { fail } from "../rules/delivery-state.ts";
import { GIVEN_UP_BY_RELAY, undeliveredChanges } from "../rules/undelivered.ts";
import type { AttemptOptions, PushOutcome, PushSender, RecordedAttempt, Tried } from "./push-outcome.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import {
  outcomeOf,
  RemoteCalls,
  RemoteFailure,
  type RemoteResult,
  type RemoteSettings,
} from "./remote-calls.ts";
import { RemoteCards } from "./remote-cards.ts";
import { guessedInterface } from "./remote-interface.ts";
import type { RemoteAnswer, RemoteInterface, RemoteTask } from "../ports/remote-tasks.ts";
import { assertGoesOn, type RemotePosition, sendParams } from "./remote-message.ts";

export interface A2aSenderParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly outbound: Outbound;
}

export interface A2aSenderSettings extends RemoteSettings {
  readonly messageTtlMs: number;
}

/** Where a message goes to: a way to the agent, and the message's place there. */
interface Destination extends RemotePosition {
  readonly at: RemoteInterface;
  readonly isGuessed: boolean;
}

/** Sends messages to agents that speak A2A, wherever they are: what they are asked becomes a task of theirs. */
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
    mail: MailboxMessage,
    how: AttemptOptions,
  ): Promise<Tried | undefined> {
    const { delivery, message } = mail;
    const isRepeatable = delivery.duplicateSafety === "idempotent";
    let isAnnounced = false;
    try {
      const parsed = JSON.parse(message.json) as Message;
      assertGoesOn(parsed);
      const to = await this.#destination(endpoint, delivery, how.signal);
      if (!isRepeatable) {
        isAnnounced = await how.announce();
        if (!isAnnounced) return undefined;
      }
      return await this.#send(endpoint, parsed, to, how.signal);
    } catch (reason) {
      if (!(reason instanceof RemoteFailure)) throw reason;
      if (reason.kind === "refused") this.#cards.forget(endpoint.url);
      const isStopped = how.signal.aborted && (reason.kind === "stopped" || isRepeatable);
      // What was announced has to be put on record, or the next relay would think that it may have arrived.
      if (isStopped && !isAnnounced) return undefined;
      const { answer, message: error } = reason;
      const outcome = reason instanceof NotYet ? notYet(reason) : outcomeOf(reason, delivery);
      if (answer === undefined) return { status: null, error, answer: null, outcome };
      return { status: answer.status, error: null, answer: excerpt(answer.text), outcome };
    }
  }

  /** Whoever follows the task is told with the same commit where it is now; whoever waits in vain, that it is over. */
  async changesAfter(recorded: RecordedAttempt): Promise<Partial<Changes>> {
    const { delivery, push } = recorded;
    if (delivery === undefined) return {};
    const { tenant } = delivery;
    const followed = await this.#followed(recorded, delivery);
    // Nobody but the relay ever looks into the mailbox of an agent that has no key, so that nothing more would happen.
    const isOver = push.state === "failed" && delivery.state === "available" && isRemote(delivery.agentId);
    return isOver ? combine(tenant, [followed, ...(await this.#givenUp(recorded, delivery))]) : followed;
  }

  async #givenUp(
    { tried, nowMs }: RecordedAttempt,
    delivery: DeliveryRecord,
  ): Promise<readonly Partial<Changes>[]> {
    const reason = "reason" in tried.outcome ? tried.outcome.reason : "it did not arrive";
    const defaults = { ids: this.#ids, nowMs, messageTtlMs: this.#messageTtlMs };
    const dead = fail(delivery, undefined, reason, nowMs);
    return undeliveredChanges(this.#store, defaults, dead, GIVEN_UP_BY_RELAY);
  }

  async #followed(recorded: RecordedAttempt, delivery: DeliveryRecord): Promise<Partial<Changes>> {
    const { push, tried } = recorded;
    if (delivery.taskId === null) return {};
    const task = await this.#store.task(delivery.tenant, delivery.taskId);
    if (task?.assignee !== delivery.agentId) return {};
    const known = await this.#store.remoteTask(task.tenant, task.id);
    if (tried.remote !== undefined) {
      const { at, answer } = tried.remote;
      const before = known ?? newRemoteTask(task, delivery, at, recorded.nowMs);
      return { remoteTasks: [answered({ ...before, ...at }, delivery, answer, recorded.nowMs)] };
    }
    if (push.state !== "failed" || isTerminal(task.state)) return {};
    // The agent never got the answer to its question, so that it is asked once more.
    if (isFollowUp(delivery) && known !== undefined) {
      return { remoteTasks: [{ ...known, statusDigest: null, nextAtMs: recorded.nowMs }] };
    }
    if (tried.outcome.kind !== "refused" || isFollowUp(delivery) || isRemote(delivery.agentId)) return {};
    const before = known ?? newRemoteTask(task, delivery, guessedInterface(""), recorded.nowMs);
    return { remoteTasks: [answered(before, delivery, { refused: tried.outcome.reason }, recorded.nowMs)] };
  }

  /** What belongs to a task that the agent has already goes where that is. */
  async #destination(
    endpoint: PushEndpoint,
    delivery: DeliveryRecord,
    signal: AbortSignal,
  ): Promise<Destination> {
    const { tenant, taskId, threadId, sender: requester } = delivery;
    const task = taskId === null ? undefined : await this.#store.task(tenant, taskId);
    const isItsWork = task?.assignee === endpoint.agentId;
    if (taskId !== null && isItsWork && isFollowUp(delivery)) {
      const known = await this.#store.remoteTask(tenant, taskId);
      if (known?.remoteTaskId == null)
        throw new NotYet("the message that asks for the task has not arrived yet");
      const contextId = known.remoteContextId ?? undefined;
      return { at: interfaceOf(known), isGuessed: false, taskId: known.remoteTaskId, contextId };
    }
    const { at, isGuessed } = await this.#cards.find(endpoint.url, signal);
    const sinceMs = await this.#store.othersBeforeMs(tenant, requester);
    const query = { tenant, agentId: endpoint.agentId, requester, sinceMs, threadId, url: at.url };
    return { at, isGuessed, contextId: await this.#store.remoteContextId(query) };
  }

  async #send(
    endpoint: PushEndpoint,
    message: Message,
    to: Destination,
    signal: AbortSignal,
  ): Promise<Tried> {
    const params = sendParams(message, to);
    const options = { idempotencyKey: headerText(message.id), signal };
    const ask = (at: RemoteInterface): Promise<RemoteResult> => this.#calls.call(at, "send", params, options);
    try {
      return triedAt(to.at, await ask(to.at));
    } catch (reason) {
      // Without a card its version was a guess, and an agent that does not know the method has done nothing.
      if (!to.isGuessed || !isUnknownMethod(reason)) throw reason;
      const at = { ...to.at, dialect: "1.0" } as const;
      const tried = triedAt(at, await ask(at));
      this.#cards.learn(endpoint.url, at);
      return tried;
    }
  }
}

/** It is tried again at its time, and says nothing of the endpoint. */
class NotYet extends RemoteFailure {
  constructor(reason: string) {
    super("failed", reason);
  }
}

function notYet({ reason }: NotYet): PushOutcome {
  return { kind: "refused", reason, retryAfter: undefined };
}

function triedAt(at: RemoteInterface, { result, answer }: RemoteResult): Tried {
  const reply = readReply(result);
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

function readReply(result: Readonly<Record<string, unknown>>): RemoteAnswer | undefined {
  const task = result["task"] as A2aTask | undefined;
  if (typeof task?.id === "string" && task.id !== "" && typeof task.status?.state === "string")
    return { task };
  const message = result["message"] as A2aMessage | undefined;
  return Array.isArray(message?.parts) ? { message } : undefined;
}

/** MailboxMessage about work that the agent has, or will have, and not what asks for it. */
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

/** An agent may go on with another task than the one it was asked about; what it said to that is no longer of use. */
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
  // Told that more may come, the decoder leaves out a character that the cut went through.
  return new TextDecoder().decode(bytes, { stream: true });
}

/** Ids may have characters that a header cannot carry. */
function headerText(id: string): string {
  return id.replaceAll(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);
}
