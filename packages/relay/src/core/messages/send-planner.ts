import { type AgentId, GUEST, type Message, type Receipt, RelayError } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Demand } from "../access/capability-demand.ts";
import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Directory } from "../agents/directory.ts";
import { isRemote } from "../rules/remote-address.ts";
import type { RemoteAgents } from "../registration/remote-agents.ts";
import type { Clock } from "../ports/clock.ts";
import { combine } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { Clash, RelayStore } from "../ports/relay-store.ts";
import type { ServiceParts } from "../service-parts.ts";
import {
  contentDigest,
  isTaskKey,
  keyName,
  type MessageDraft,
  sendKeyOf,
  type TaskNaming,
} from "./message-draft.ts";
import type { SendKey } from "../ports/messages.ts";
import { findSameWork, mayBeShared, NOT_SHARED } from "./same-work.ts";
import { planSend, type SendContext, type SendPlan } from "./send-plan.ts";
import { answerDigest, answerState } from "./task-effect.ts";

export interface SendResult {
  /** False when the same message had been accepted before. */
  readonly created: boolean;
  readonly message: Message;
  readonly receipt: Receipt;
}

export interface MessageSettings {
  readonly messageTtlMs: number;
  readonly mailboxOpenMax: number;
}

/** What is known of a message beside what it says. */
export interface Addressing {
  /** Of the task it asks for, where its sender names tasks. */
  readonly naming?: TaskNaming | undefined;
  /** It asks over A2A. */
  readonly isAsked?: boolean;
  /** Whom its `to` means, where that was looked up just now. */
  readonly to?: AgentId | undefined;
}

/** A message whose sender and recipient are known agents. */
export interface AddressedDraft {
  readonly draft: MessageDraft;
  readonly naming: Addressing["naming"];
  readonly isAsked: boolean;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly messageId: string;
}

/** Either what is to be written, or what was answered to the same message before. */
export type Planned = { readonly plan: SendPlan } | { readonly before: SendResult };

/** What a message refers to. */
type Surroundings = Pick<
  SendContext,
  "original" | "originalDelivery" | "task" | "taskDeliveries" | "taskAsked" | "artifacts" | "parent"
>;

const NOBODY: ReadonlySet<AgentId> = new Set();
const NOTHING_AROUND: Surroundings = {
  original: undefined,
  originalDelivery: undefined,
  task: undefined,
  taskDeliveries: [],
  taskAsked: undefined,
  artifacts: [],
  parent: undefined,
};

/** Gathers what a message touches and lets the pure rules decide. Writes nothing. */
export class SendPlanner {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #gate: CapabilityGate;
  readonly #directory: Directory;
  readonly #remoteAgents: RemoteAgents;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #settings: MessageSettings;

  constructor(parts: ServiceParts, settings: MessageSettings) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#gate = parts.gate;
    this.#directory = parts.directory;
    this.#remoteAgents = parts.remoteAgents;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#settings = settings;
  }

  /** Who writes to whom, and may they. Whoever asks over A2A without being an agent does so as a guest. */
  async address(
    principal: Principal,
    draft: MessageDraft,
    { naming, isAsked = false, to }: Addressing = {},
  ): Promise<AddressedDraft> {
    const { tenant } = principal;
    const own = principal.kind === "agent" ? principal.agentId : undefined;
    const from = draft.from ?? own ?? (isAsked ? GUEST : undefined);
    if (from === undefined) {
      throw new RelayError("invalid_argument", "from: is missing; an operator must say who sends");
    }
    const isGuest = isAsked && from === GUEST;
    const sender = isGuest ? GUEST : await this.#directory.resolve(tenant, from, "from");
    await this.#guard.authorize(principal, "messages.send", { agentId: sender });
    const recipient = to ?? (await this.#recipientOf(tenant, sender, draft, naming));
    if (isRemote(recipient)) this.#remoteAgents.check(recipient, "to");
    if (recipient === sender && draft.kind !== "heartbeat") {
      throw new RelayError("invalid_argument", `to: ${recipient} cannot write to itself`);
    }
    return { draft, naming, isAsked, sender, recipient, messageId: draft.id ?? this.#ids.message() };
  }

  #recipientOf(
    tenant: string,
    sender: AgentId,
    draft: MessageDraft,
    naming: TaskNaming | undefined,
  ): Promise<AgentId> | AgentId {
    // Whether it is an answer to a task of a guest is seen when its task is known.
    if (draft.to === GUEST) return GUEST;
    const meant = this.#directory.resolveRecipient(tenant, draft.to, "to");
    const key = sendKeyOf(draft, naming);
    return key === undefined ? meant : this.#orKnownTo(key, meant, tenant, sender, draft);
  }

  /** Who a retry was sent to stays known to its key, also after that agent has left. */
  async #orKnownTo(
    key: string,
    meant: Promise<AgentId>,
    tenant: string,
    sender: AgentId,
    draft: MessageDraft,
  ): Promise<AgentId> {
    try {
      return await meant;
    } catch (reason) {
      if (RelayError.from(reason).code !== "unknown_agent") throw reason;
      const known = await this.#store.sendKey(tenant, sender, draft.to as AgentId, key);
      if (known === undefined) throw reason;
      return known.recipient;
    }
  }

  /** `newcomers` are agents elsewhere that become known by messages of the same change. */
  async plan(
    principal: Principal,
    addressed: AddressedDraft,
    clash: Clash | undefined,
    newcomers: ReadonlySet<AgentId> = NOBODY,
  ): Promise<Planned> {
    const { tenant } = principal;
    const { draft, naming, isAsked, sender, recipient, messageId } = addressed;
    const key = sendKeyOf(draft, naming);
    const sendKey = key === undefined ? undefined : { key, digest: naming?.digest ?? contentDigest(draft) };
    if (sendKey !== undefined) {
      const known = await this.#store.sendKey(tenant, sender, recipient, sendKey.key);
      if (known !== undefined) return { before: await this.#sentBefore(known, sendKey.digest) };
    }
    const isRemoteRecipient = isRemote(recipient);
    if (clash === "agent" && !isRemoteRecipient) await this.#directory.resolve(tenant, recipient, "to");
    if (clash === "message_id") {
      throw new RelayError("conflict", `id: a message ${messageId} exists already; choose another id`);
    }
    if (clash === "task_client_id") {
      throw new RelayError(
        "conflict",
        `id: ${sender} has another task "${keyName(key ?? "")}"; use a new id`,
      );
    }
    if (naming !== undefined) await this.#assertOwnName(tenant, naming);
    const nowMs = this.#clock.nowMs();
    // What there is nothing to wait for is not waited for: every message comes by here.
    const around = standsAlone(draft) ? NOTHING_AROUND : await this.#surroundings(principal, draft, sender);
    const isShared = mayBeShared(draft, around.task);
    const same = isShared ? await findSameWork(this.#store, { tenant, ...addressed }, nowMs) : NOT_SHARED;
    // Member by member, because spreads are slow, and every message comes by here.
    const context: SendContext = {
      tenant,
      sender,
      recipient,
      draft,
      messageId,
      original: around.original,
      originalDelivery: around.originalDelivery,
      task: around.task,
      taskDeliveries: around.taskDeliveries,
      taskAsked: around.taskAsked,
      artifacts: around.artifacts,
      parent: around.parent,
      clientTaskId: naming?.clientTaskId,
      askedOf: isAsked ? recipient : undefined,
      resultKey: same.resultKey,
      cached: same.cached,
      running: same.running,
      mailboxOpenMax: this.#settings.mailboxOpenMax,
      sendKey,
      defaults: { ids: this.#ids, nowMs, messageTtlMs: this.#settings.messageTtlMs },
    };
    const before = context.task === undefined ? undefined : await this.#answeredBefore(context);
    if (before !== undefined) return { before };
    const demand = demandOf(context);
    const pass = demand === undefined ? undefined : await this.#gate.pass(principal, demand);
    if (recipient === GUEST) assertAnswersGuest(context);
    else this.#assertRoom(recipient, await this.#store.countOpen(tenant, recipient));
    const plan = planSend(context);
    const known = isRemoteRecipient
      ? await this.#remoteAgents.registration(principal, recipient, newcomers)
      : undefined;
    if (pass?.events === undefined && known === undefined) return { plan };
    return { plan: { ...plan, changes: combine(tenant, [pass ?? {}, known ?? {}, plan.changes]) } };
  }

  /** A task that is called as another one is in the relay would be taken for it, by workers and by scopes. */
  async #assertOwnName(tenant: string, { clientTaskId }: TaskNaming): Promise<void> {
    if ((await this.#store.task(tenant, clientTaskId)) === undefined) return;
    throw new RelayError("conflict", `id: "${clientTaskId}" is the relay's own name of a task; use a new id`);
  }

  /** What the message refers to, as it stands now. */
  async #surroundings(principal: Principal, draft: MessageDraft, sender: AgentId): Promise<Surroundings> {
    const { tenant } = principal;
    const store = this.#store;
    const original = draft.replyTo === undefined ? undefined : await store.message(tenant, draft.replyTo);
    const mine = original?.sender === sender || original?.recipient === sender;
    if (draft.kind === "reply" && draft.replyTo !== undefined && !mine) {
      throw new RelayError("not_found", `reply_to: ${sender} has no message ${draft.replyTo}`);
    }
    const answers = draft.kind === "reply" || draft.kind === "status" || draft.kind === "handoff";
    const taskId = draft.taskId ?? (answers && mine ? (original?.taskId ?? undefined) : undefined);
    const task = taskId === undefined ? undefined : await store.task(tenant, taskId);
    // Whoever only names a task learns nothing about it, not even by what else it may not do.
    if (draft.taskId !== undefined && task?.requester !== sender && task?.assignee !== sender) {
      throw new RelayError("not_found", `task_id: there is no task ${draft.taskId}`);
    }
    if (task !== undefined && (task.requester === sender || task.assignee === sender)) {
      const unseen = `task_id: there is no task ${task.id}`;
      const target = { parties: [task.requester, task.assignee], atMs: task.createdAtMs };
      await this.#guard.authorize(principal, "tasks.read", target, unseen);
    }
    const parent = draft.parentId === undefined ? undefined : await store.task(tenant, draft.parentId);
    if (draft.parentId !== undefined) {
      const parties = parent === undefined ? [] : [parent.requester, parent.assignee];
      const unseen = `parent: there is no task ${draft.parentId}`;
      await this.#guard.authorize(principal, "tasks.read", { parties, atMs: parent?.createdAtMs }, unseen);
      if (parent === undefined) throw new RelayError("not_found", unseen);
    }
    const decides = draft.given.decision !== undefined && mine && original !== undefined;
    return {
      original: mine ? original : undefined,
      originalDelivery: decides ? await store.delivery(tenant, original.id) : undefined,
      task,
      taskDeliveries: task === undefined ? [] : await store.openDeliveriesOfTask(tenant, task.id),
      taskAsked: task === undefined ? undefined : await store.delivery(tenant, task.messageId),
      artifacts: task === undefined ? [] : await store.artifacts(tenant, task.id),
      parent,
    };
  }

  async #sentBefore(known: SendKey, digest: string): Promise<SendResult> {
    if (known.digest !== digest) {
      const [field, what] = isTaskKey(known.key) ? ["id", "id"] : ["idempotency", "key"];
      throw new RelayError(
        "conflict",
        `${field}: "${keyName(known.key)}" was already used for other content (message ${known.messageId}); use a new ${what}`,
        { details: { message_id: known.messageId } },
      );
    }
    return this.#storedAnswer(known.tenant, known.messageId, known);
  }

  /** A second, identical answer to a finished task is the first one again. */
  async #answeredBefore(context: SendContext): Promise<SendResult | undefined> {
    const { task, tenant } = context;
    if (task?.resultMessageId == null || task.resultDigest !== answerDigest(context)) return undefined;
    return this.#storedAnswer(tenant, task.resultMessageId, {
      recipient: task.requester,
      threadId: task.threadId,
      taskId: task.id,
    });
  }

  async #storedAnswer(
    tenant: string,
    messageId: string,
    about: Pick<SendKey, "recipient" | "threadId" | "taskId">,
  ): Promise<SendResult> {
    const record = await this.#store.message(tenant, messageId);
    const receipt: Receipt = {
      message_id: messageId,
      stage: "accepted",
      recipient: about.recipient,
      thread_id: about.threadId,
      ...(about.taskId === null ? {} : { task_id: about.taskId }),
    };
    // The key outlives its message by weeks: a late retry still gets its receipt, with the message's id only.
    const message = (record === undefined ? { id: messageId } : JSON.parse(record.json)) as Message;
    return { created: false, message, receipt };
  }

  #assertRoom(recipient: AgentId, open: number): void {
    if (open < this.#settings.mailboxOpenMax) return;
    throw new RelayError(
      "mailbox_full",
      `the mailbox of ${recipient} holds ${open} unsettled messages, its limit; try again when it has read some`,
      { details: { open, limit: this.#settings.mailboxOpenMax } },
    );
  }
}

function standsAlone({ replyTo, taskId, parentId }: MessageDraft): boolean {
  return replyTo === undefined && taskId === undefined && parentId === undefined;
}

/** A guest has no mailbox: it sees what is said about its tasks, and nothing else can be said to it. */
function assertAnswersGuest({ task, sender }: SendContext): void {
  if (task?.requester === GUEST && task.assignee === sender) return;
  throw new RelayError(
    "unknown_agent",
    `to: ${GUEST} stands for A2A callers without a mailbox; only an answer to a task of theirs reaches them`,
  );
}

/** Only messages that make, move or answer a task need capabilities. */
function demandOf(context: SendContext): Demand | undefined {
  const { draft, task, sender, recipient } = context;
  if (draft.kind === "request" || draft.kind === "handoff") {
    const clientTaskId = task === undefined ? context.clientTaskId : task.clientId;
    return { kind: "send", sender, recipient, taskId: task?.id, clientTaskId };
  }
  if (task === undefined || answerState(context) === undefined) return undefined;
  return {
    kind: "respond",
    responder: sender,
    requester: task.requester,
    taskId: task.id,
    clientTaskId: task.clientId,
    leaseId: draft.leaseId,
  };
}
