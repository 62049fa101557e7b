import {
  type AgentId,
  BatchRequestSchema,
  LIMITS,
  type Message,
  type MessageResponse,
  parseRecordId,
  type PushView,
  type Receipt,
  RelayError,
} from "@a2a-relay/protocol";
import { Type } from "typebox";
import type { Guard } from "../access/guard.ts";
import type { UsedNonce } from "../ports/access.ts";
import { type Principal, speaksFor } from "../access/principal.ts";
import type { AgentRecord } from "../ports/agents.ts";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import { Semaphore } from "../mechanisms/semaphore.ts";
import { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import type { Changes, Clash, RelayStore } from "../ports/relay-store.ts";
import { shapeParserOf } from "../mechanisms/schema-check.ts";
import type { ServiceParts } from "../service-parts.ts";
import { receiptsOf } from "../journal/event-view.ts";
import { viewDelivery } from "../mailboxes/delivery-view.ts";
import { viewPush } from "../outbound/push-view.ts";
import { assertIndependent } from "./atomic-batch.ts";
import { parseMessageDraft, type TaskNaming } from "./message-draft.ts";
import type { MessageRecord } from "../ports/messages.ts";
import {
  type AddressedDraft,
  type Addressing,
  type MessageSettings,
  type Planned,
  type SendResult,
  SendPlanner,
} from "./send-planner.ts";

/** The messages are read one by one, so that a bad one is answered for itself. */
const AnyMessagesSchema = Type.Object(
  {
    messages: Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.batchMessagesMax }),
    atomic: BatchRequestSchema.properties.atomic,
  },
  { additionalProperties: false },
);
const parseBatch = shapeParserOf(AnyMessagesSchema, "batch");

/** Messages of a batch in one change: many, yet few enough that other callers do not wait long for theirs. */
const TOGETHER_MAX = 100;
/** Batches under work at one time: enough to share a commit, few enough for the processor's caches. */
const BATCHES_MAX = 4;

/** What came of one message of a batch. */
export type SendOutcome = SendResult | RelayError;

interface PlannedMessage {
  readonly addressed: AddressedDraft;
  readonly planned: Planned;
}

/** Accepting messages: who, where to, allowed, seen before, what does it do; then one commit. */
export class MessageService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #planner: SendPlanner;
  readonly #batches = new Semaphore(BATCHES_MAX);
  readonly #sharers: KeyedMutex;
  readonly #capabilityMutex: KeyedMutex;

  constructor(parts: ServiceParts, settings: MessageSettings) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#planner = new SendPlanner(parts, settings);
    this.#sharers = new KeyedMutex(parts.clock);
    this.#capabilityMutex = parts.capabilityMutex;
  }

  async send(principal: Principal, input: unknown): Promise<SendResult> {
    return this.#send(principal, await this.#planner.address(principal, parseMessageDraft(input)));
  }

  /** One that counts once: whatever is written of it, that its nonce was used is written with it. */
  async sendOnce(principal: Principal, input: unknown, nonce: UsedNonce): Promise<SendResult> {
    return this.#send(principal, await this.#planner.address(principal, parseMessageDraft(input)), nonce);
  }

  /** A request whose sender names the task itself: the same name is the same task, with the same answer. */
  async sendTask(principal: Principal, input: unknown, task: TaskNaming): Promise<SendResult> {
    const draft = parseMessageDraft(input);
    return this.#send(principal, await this.#planner.address(principal, draft, { naming: task }));
  }

  /** A message over A2A: the task it asks for is listed there, and whoever is no agent asks as a guest. */
  async ask(
    principal: Principal,
    input: unknown,
    about: Omit<Addressing, "isAsked"> = {},
  ): Promise<SendResult> {
    const draft = parseMessageDraft(input);
    return this.#send(principal, await this.#planner.address(principal, draft, { ...about, isAsked: true }));
  }

  /** Each message is answered for itself, in order, unless `atomic` asks for all or none. */
  async sendBatch(principal: Principal, input: unknown): Promise<readonly SendOutcome[]> {
    const { messages, atomic } = parseBatch(input);
    return this.#batches.run(() =>
      atomic === true ? this.#sendAtomic(principal, messages) : this.#sendEach(principal, messages),
    );
  }

  async get(principal: Principal, id: string): Promise<MessageResponse> {
    const { tenant } = principal;
    const record = await this.#store.message(tenant, parseRecordId(id, "message_id"));
    // Asked also of what is not there: else how it is refused would tell the two apart.
    const parties = record === undefined ? [] : [record.sender, record.recipient];
    const unseen = `there is no message ${id}`;
    const atMs = record?.acceptedAtMs;
    await this.#guard.authorize(principal, "messages.read", { parties, atMs }, unseen);
    if (record === undefined) throw new RelayError("not_found", unseen);
    const delivery = await this.#store.delivery(tenant, id);
    const events = await this.#store.eventsOfMessage(tenant, id);
    const push = await this.#pushOf(principal, record);
    return {
      message: JSON.parse(record.json) as Message,
      ...(delivery === undefined ? {} : { delivery: viewDelivery(delivery) }),
      ...(record.taskId === null ? {} : { task_id: record.taskId }),
      receipts: receiptsOf(events),
      ...(push === undefined ? {} : { push }),
    };
  }

  async #pushOf(
    principal: Principal,
    { tenant, id, recipient }: MessageRecord,
  ): Promise<PushView | undefined> {
    const push = await this.#store.push(tenant, id);
    if (push === undefined) return undefined;
    // What the recipient's server says is nothing for whoever wrote to the recipient.
    const withAnswers = speaksFor(principal, recipient);
    const attempts = await this.#store.pushAttempts(tenant, id, LIMITS.pushAttemptsMax);
    return viewPush(push, attempts, { withAnswers });
  }

  async #send(principal: Principal, addressed: AddressedDraft, nonce?: UsedNonce): Promise<SendResult> {
    const { draft, sender, recipient } = addressed;
    if (draft.kind === "heartbeat") {
      if (nonce !== undefined) await this.#use(principal.tenant, nonce);
      return this.#heartbeat(principal, addressed);
    }
    const decide = async (clash: Clash | undefined): Promise<Decision<SendResult>> => {
      if (clash === "nonce") throw nonceUsed();
      const planned = await this.#planner.plan(principal, addressed, clash);
      const changes = "plan" in planned ? planned.plan.changes : undefined;
      return {
        changes: nonce === undefined ? changes : using(nonce, principal.tenant, changes),
        answer: toAnswer(planned),
      };
    };
    const spendExclusively = this.#capabilityMutex.at(principal.tenant, recipient);
    const act = (): Promise<SendResult> => decideAndCommit(this.#store, decide, spendExclusively);
    if (draft.duplicateSafety !== "idempotent") return act();
    // Of two that ask for the same work at the same time, the second must see the first.
    const turn = JSON.stringify([principal.tenant, sender, recipient, draft.idempotencyKey?.trim()]);
    return this.#sharers.take(turn, act);
  }

  /** Plans messages while earlier ones are on their way to the disk; the batch keeps its own order. */
  async #sendEach(principal: Principal, inputs: readonly unknown[]): Promise<readonly SendOutcome[]> {
    const groups: Promise<readonly SendOutcome[]>[] = [];
    let messages: PlannedMessage[] = [];
    const handOver = (): void => {
      if (messages.length > 0) groups.push(this.#commitTogether(principal, messages));
      messages = [];
    };
    for (const input of inputs) {
      try {
        const draft = parseMessageDraft(input);
        // It may answer a message before it in the same batch, which must be there to be seen.
        if (draft.replyTo !== undefined || draft.taskId !== undefined) {
          handOver();
          await Promise.all(groups);
        }
        const addressed = await this.#planner.address(principal, draft);
        const planned = await this.#plan(principal, addressed);
        messages.push({ addressed, planned });
        if (newcomersOf(planned).length > 0) {
          // The next message may be for the same agent, or for one for which there is no room any more.
          handOver();
          await Promise.all(groups);
        }
      } catch (reason) {
        handOver();
        groups.push(Promise.resolve([RelayError.from(reason)]));
      }
      if (messages.length >= TOGETHER_MAX) handOver();
    }
    handOver();
    return (await Promise.all(groups)).flat();
  }

  #plan(principal: Principal, addressed: AddressedDraft): Promise<Planned> {
    if (addressed.draft.kind !== "heartbeat") return this.#planner.plan(principal, addressed, undefined);
    return this.#heartbeat(principal, addressed).then((before) => ({ before }));
  }

  /** Many messages as one change cost far less. When one of them clashes, each is sent for itself. */
  async #commitTogether(
    principal: Principal,
    messages: readonly PlannedMessage[],
  ): Promise<readonly SendOutcome[]> {
    const plans = messages.flatMap(({ planned }) => ("plan" in planned ? [planned.plan.changes] : []));
    try {
      const isDone =
        plans.length === 0 || (await this.#store.commit(combine(principal.tenant, plans))).committed;
      if (isDone) return messages.map(({ planned }) => toAnswer(planned));
    } catch (reason) {
      const error = RelayError.from(reason);
      return messages.map(({ planned }) => ("before" in planned ? planned.before : error));
    }
    const outcomes: SendOutcome[] = [];
    for (const { addressed, planned } of messages) {
      const sent = "before" in planned ? planned.before : this.#send(principal, addressed);
      outcomes.push(await Promise.resolve(sent).catch((reason: unknown) => RelayError.from(reason)));
    }
    return outcomes;
  }

  async #sendAtomic(principal: Principal, inputs: readonly unknown[]): Promise<readonly SendResult[]> {
    const addressed: AddressedDraft[] = [];
    for (const [index, input] of inputs.entries()) {
      addressed.push(await naming(index, () => this.#addressAtomic(principal, input)));
    }
    return decideAndCommit<readonly SendResult[]>(this.#store, async (clash) => {
      if (clash === "mailbox") {
        throw new RelayError(
          "mailbox_full",
          "messages: a mailbox has no room for all of them; nothing was sent",
        );
      }
      const planned: Planned[] = [];
      const newcomers = new Set<AgentId>();
      for (const [index, message] of addressed.entries()) {
        const each = await naming(index, () => this.#planner.plan(principal, message, clash, newcomers));
        planned.push(each);
        for (const { id } of newcomersOf(each)) newcomers.add(id);
      }
      const plans = planned.map((each) => ("plan" in each ? each.plan.changes : undefined));
      assertIndependent(plans);
      const changes = plans.filter((each) => each !== undefined);
      return {
        changes: changes.length === 0 ? undefined : combine(principal.tenant, changes),
        answer: planned.map(toAnswer),
      };
    });
  }

  async #addressAtomic(principal: Principal, input: unknown): Promise<AddressedDraft> {
    const draft = parseMessageDraft(input);
    if (draft.kind !== "heartbeat") return this.#planner.address(principal, draft);
    throw new RelayError("invalid_argument", "type: a heartbeat cannot be part of an atomic batch");
  }

  async #use(tenant: string, nonce: UsedNonce): Promise<void> {
    const { committed } = await this.#store.commit(using(nonce, tenant, undefined));
    if (!committed) throw nonceUsed();
  }

  /** Renews presence and is not kept as mail. */
  async #heartbeat(principal: Principal, addressed: AddressedDraft): Promise<SendResult> {
    const { draft, sender, recipient, messageId } = addressed;
    const nowMs = this.#clock.nowMs();
    await this.#store.touchAgent(principal.tenant, sender, nowMs);
    const threadId = draft.threadId ?? this.#ids.thread();
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
}

function toAnswer(planned: Planned): SendResult {
  if ("before" in planned) return planned.before;
  const { message, receipt } = planned.plan;
  return { created: true, message, receipt };
}

/** Agents elsewhere that become known with the message. */
function newcomersOf(planned: Planned): readonly AgentRecord[] {
  return "plan" in planned ? (planned.plan.changes.agents ?? []) : [];
}

/** Also what was accepted before, and so changes nothing more, is answered once for each nonce. */
function using(nonce: UsedNonce, tenant: string, changes: Changes | undefined): Changes {
  return combine(tenant, [changes ?? {}, { nonces: [nonce] }]);
}

function nonceUsed(): RelayError {
  return new RelayError("conflict", "nonce: this nonce was used already; sign again with a fresh one");
}

/** An error of an atomic batch says which message it is about. */
async function naming<Result>(index: number, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (reason) {
    const error = RelayError.from(reason);
    throw new RelayError(error.code, `messages[${index}]: ${error.message}; nothing was sent`, {
      cause: reason,
      details: { ...error.details, index },
    });
  }
}
