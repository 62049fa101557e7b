import { type AgentId, GUEST, type Message, type Receipt, RelayError } from "@a2a-relay/protocol";
import type { Demand } from "../access/capability-demand.ts";
import type { CapabilityGate, GatePass } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import type { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import type { UsedNonce } from "../ports/access.ts";
import type { Clock } from "../ports/clock.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { SendKey } from "../ports/messages.ts";
import type { Changes, Clash, RelayStore } from "../ports/relay-store.ts";
import type { RemoteAgents } from "../registration/remote-agents.ts";
import { isRemote } from "../rules/remote-address.ts";
import { decideSend, type SendInput, type SendRecords, type SendResult } from "./decide-send.ts";
import {
  contentDigest,
  isTaskKey,
  keyName,
  type MessageDraft,
  parseMessageDraft,
  sendKeyOf,
  type TaskNaming,
} from "./message-draft.ts";
import { loadRecords } from "./send-records.ts";
import { answerDigest, answerState } from "./task-effect.ts";
import { messageOf } from "../mechanisms/stored-json.ts";

export interface SendParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly guard: Guard;
  readonly gate: CapabilityGate;
  readonly directory: Directory;
  readonly remoteAgents: RemoteAgents;
  /** By the agent whose counted capability is spent. */
  readonly capabilityMutex: KeyedMutex;
  readonly settings: SendSettings;
}

export interface SendSettings {
  readonly messageTtlMs: number;
  readonly mailboxOpenMax: number;
}

/** What a wire knows of a message beside its JSON. */
export interface SendOptions {
  /** The sender's own name for the task that the message asks for. The same name is the same task. */
  readonly naming?: TaskNaming | undefined;
  /** The message asks over A2A: its task is listed there, and a caller that is no agent asks as a guest. */
  readonly isAsked?: boolean | undefined;
  /** The recipient, where the caller has resolved it already. */
  readonly to?: AgentId | undefined;
  /** Written with the message; a second send with the same nonce is refused. */
  readonly nonce?: UsedNonce | undefined;
}

/** A message whose sender and recipient are resolved, and whose caller may speak for the sender. */
export interface AddressedMessage {
  readonly draft: MessageDraft;
  readonly options: SendOptions;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly messageId: string;
  readonly sendKey: SendInput["sendKey"];
}

/** Accepts a message: durable once resolved. The same idempotency key gives the same receipt again. */
export async function send(
  parts: SendParts,
  principal: Principal,
  input: unknown,
  options: SendOptions = {},
): Promise<SendResult> {
  const draft = parseMessageDraft(input);
  const message = await address(parts, principal, draft, options);
  return sendAddressed(parts, principal, message);
}

export async function sendAddressed(
  parts: SendParts,
  principal: Principal,
  message: AddressedMessage,
): Promise<SendResult> {
  const { draft, options, recipient } = message;
  const { tenant } = principal;
  if (draft.kind === "heartbeat" && options.nonce !== undefined) {
    // Before the presence is renewed: a replayed heartbeat must not renew it.
    await commitNonce(parts.store, { tenant, events: [], nonces: [options.nonce] });
    return heartbeat(parts, tenant, message);
  }
  const decide = async (clash: Clash | undefined): Promise<Decision<SendResult>> => {
    if (clash === "nonce") throw nonceUsed();
    const { changes, answer } = await loadAndDecide(parts, principal, message, clash);
    if (options.nonce === undefined) return { changes, answer };
    // Also with an answer that changes nothing else.
    return { changes: combine(tenant, [changes ?? {}, { nonces: [options.nonce] }]), answer };
  };
  return decideAndCommit(parts.store, decide, parts.capabilityMutex.at(tenant, recipient));
}

async function commitNonce(store: RelayStore, changes: Changes): Promise<void> {
  if (!(await store.commit(changes)).committed) throw nonceUsed();
}

function nonceUsed(): RelayError {
  return new RelayError("conflict", "nonce: this nonce was used already; sign again with a fresh one");
}

/** Resolves sender and recipient and checks that the caller may speak for the sender. */
export async function address(
  parts: SendParts,
  principal: Principal,
  draft: MessageDraft,
  options: SendOptions = {},
): Promise<AddressedMessage> {
  const { tenant } = principal;
  const sender = await resolveSender(parts, principal, draft, options);
  await parts.guard.authorize(principal, "messages.send", { agentId: sender });
  const key = sendKeyOf(draft, options.naming);
  const recipient = options.to ?? (await resolveRecipient(parts, tenant, sender, draft, key));
  if (isRemote(recipient)) parts.remoteAgents.check(recipient, "to");
  if (recipient === sender && draft.kind !== "heartbeat") {
    throw new RelayError("invalid_argument", `to: ${recipient} cannot write to itself`);
  }
  const messageId = draft.id ?? parts.ids.message();
  const sendKey =
    key === undefined ? undefined : { key, digest: options.naming?.digest ?? contentDigest(draft) };
  return { draft, options, sender, recipient, messageId, sendKey };
}

async function resolveSender(
  { directory }: SendParts,
  principal: Principal,
  draft: MessageDraft,
  { isAsked = false }: SendOptions,
): Promise<AgentId> {
  const own = principal.kind === "agent" ? principal.agentId : undefined;
  const from = draft.from ?? own ?? (isAsked ? GUEST : undefined);
  if (from === undefined) {
    throw new RelayError("invalid_argument", "from: is missing; an operator must say who sends");
  }
  return isAsked && from === GUEST ? GUEST : directory.resolve(principal.tenant, from, "from");
}

async function resolveRecipient(
  { directory, store }: SendParts,
  tenant: string,
  sender: AgentId,
  draft: MessageDraft,
  key: string | undefined,
): Promise<AgentId> {
  // Whether it answers a task of a guest is checked once the task is loaded.
  if (draft.to === GUEST) return GUEST;
  try {
    return await directory.resolveRecipient(tenant, draft.to, "to");
  } catch (reason) {
    if (RelayError.from(reason).code !== "unknown_agent" || key === undefined) throw reason;
    // A retry finds its receipt also after the recipient was removed.
    const sent = await store.messages.sendKey(tenant, sender, draft.to as AgentId, key);
    if (sent === undefined) throw reason;
    return sent.recipient;
  }
}

/**
 * Loads what the message refers to and decides what it does. Runs again from fresh reads after a clash. `newAgents`
 * are remote agents that other messages of the same commit register.
 */
export async function loadAndDecide(
  parts: SendParts,
  principal: Principal,
  message: AddressedMessage,
  clash?: Clash,
  newAgents: ReadonlySet<AgentId> = new Set(),
): Promise<Decision<SendResult>> {
  if (message.draft.kind === "heartbeat") {
    return { changes: undefined, answer: await heartbeat(parts, principal.tenant, message) };
  }
  const before = await sentBefore(parts, principal.tenant, message);
  if (before !== undefined) return { changes: undefined, answer: before };
  if (clash !== undefined) await refuseClash(parts, principal.tenant, message, clash);
  const { draft, options, sender, recipient } = message;
  const records = await loadRecords(parts, principal, { draft, naming: options.naming, sender, recipient });
  const input = inputOf(parts, principal.tenant, message, records);
  const answered = await answeredBefore(parts, input);
  if (answered !== undefined) return { changes: undefined, answer: answered };
  const demand = demandOf(input);
  const pass: GatePass = demand === undefined ? {} : await parts.gate.pass(principal, demand);
  const registered = isRemote(message.recipient)
    ? await parts.remoteAgents.registration(principal, message.recipient, newAgents)
    : undefined;
  return decideSend(input, [pass, registered ?? {}]);
}

/** The answer that the same send key got before. */
async function sentBefore(
  { store }: SendParts,
  tenant: string,
  { sender, recipient, sendKey }: AddressedMessage,
): Promise<SendResult | undefined> {
  const sent = sendKey && (await store.messages.sendKey(tenant, sender, recipient, sendKey.key));
  if (sent === undefined) return undefined;
  if (sent.digest === sendKey?.digest) return storedResult(store, tenant, sent.messageId, sent);
  const [field, what] = isTaskKey(sent.key) ? ["id", "id"] : ["idempotency", "key"];
  throw new RelayError(
    "conflict",
    `${field}: "${keyName(sent.key)}" was already used for other content (message ${sent.messageId}); use a new ${what}`,
    { details: { message_id: sent.messageId } },
  );
}

/** Throws for clashes that fresh reads cannot solve. */
async function refuseClash(
  { store, directory, settings }: SendParts,
  tenant: string,
  { sender, recipient, messageId, sendKey }: AddressedMessage,
  clash: Clash,
): Promise<void> {
  switch (clash) {
    case "agent":
      if (!isRemote(recipient)) await directory.resolve(tenant, recipient, "to");
      return;
    case "message_id":
      throw new RelayError("conflict", `id: a message ${messageId} exists already; choose another id`);
    case "task_client_id":
      throw new RelayError(
        "conflict",
        `id: ${sender} has another task "${keyName(sendKey?.key ?? "")}"; use a new id`,
      );
    case "mailbox": {
      const counts = await store.deliveries.countByState(tenant, recipient);
      const open = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const limit = settings.mailboxOpenMax;
      throw new RelayError(
        "mailbox_full",
        `the mailbox of ${recipient} holds ${open} unsettled messages, its limit; try again when it has read some`,
        { details: { open, limit } },
      );
    }
    default:
  }
}

function inputOf(
  { clock, ids, settings }: SendParts,
  tenant: string,
  { draft, options, sender, recipient, messageId, sendKey }: AddressedMessage,
  records: SendRecords,
): SendInput {
  return {
    tenant,
    draft,
    sender,
    recipient,
    messageId,
    sendKey,
    clientTaskId: options.naming?.clientTaskId,
    askedOf: options.isAsked === true ? recipient : undefined,
    mailboxOpenMax: settings.mailboxOpenMax,
    defaults: { ids, nowMs: clock.nowMs(), messageTtlMs: settings.messageTtlMs },
    ...records,
  };
}

/** A second, identical answer to a finished task gets the first receipt again. */
async function answeredBefore({ store }: SendParts, input: SendInput): Promise<SendResult | undefined> {
  const { task, tenant } = input;
  if (task?.resultMessageId == null || task.resultDigest !== answerDigest(input)) return undefined;
  const { requester: recipient, threadId, id: taskId } = task;
  return storedResult(store, tenant, task.resultMessageId, { recipient, threadId, taskId });
}

async function storedResult(
  store: RelayStore,
  tenant: string,
  messageId: string,
  { recipient, threadId, taskId }: Pick<SendKey, "recipient" | "threadId" | "taskId">,
): Promise<SendResult> {
  const [record] = await store.messages.get(tenant, [messageId]);
  const receipt: Receipt = {
    message_id: messageId,
    stage: "accepted",
    recipient,
    thread_id: threadId,
    ...(taskId === null ? {} : { task_id: taskId }),
  };
  // The key outlives its message by weeks: a late retry still gets its receipt, with the message's id only.
  const message = record === undefined ? ({ id: messageId } as Message) : messageOf(record);
  return { created: false, message, receipt };
}

/** Only messages that make, move or answer a task need capabilities. */
function demandOf(input: SendInput): Demand | undefined {
  const { draft, task, sender, recipient } = input;
  if (draft.kind === "request" || draft.kind === "handoff") {
    const clientTaskId = task === undefined ? input.clientTaskId : task.clientId;
    return { kind: "send", sender, recipient, taskId: task?.id, clientTaskId };
  }
  if (task === undefined || answerState(input) === undefined) return undefined;
  return {
    kind: "respond",
    responder: sender,
    requester: task.requester,
    taskId: task.id,
    clientTaskId: task.clientId,
    leaseId: draft.leaseId,
  };
}

/** A heartbeat renews presence and is not stored as a message. */
async function heartbeat(
  { store, clock, ids }: SendParts,
  tenant: string,
  { draft, sender, recipient, messageId }: AddressedMessage,
): Promise<SendResult> {
  const nowMs = clock.nowMs();
  await store.agents.touch(tenant, sender, nowMs);
  const threadId = draft.threadId ?? ids.thread();
  const message = {
    version: "a2a.v1",
    ...draft.given,
    id: messageId,
    from: sender,
    to: recipient,
    type: "heartbeat",
    subject: draft.subject,
    body: draft.body,
    created_at: draft.given.created_at ?? new Date(nowMs).toISOString(),
    thread_id: threadId,
  } as Message;
  const receipt: Receipt = { message_id: messageId, stage: "accepted", recipient, thread_id: threadId };
  return { created: true, message, receipt };
}
