import {
  type BatchItem,
  BatchRequestSchema,
  LIMITS,
  type Message,
  type MessageResponse,
  parseRecordId,
  type Receipt,
  RelayError,
} from "@a2a-relay/protocol";
import { Type } from "typebox";
import { authorize } from "../access/authorize.ts";
import type { Principal } from "../access/principal.ts";
import type { Clock } from "../environment/clock.ts";
import { combine, decideAndCommit } from "../environment/commit-retry.ts";
import type { Identifiers } from "../environment/identifiers.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import { shapeParserOf } from "../environment/schema-check.ts";
import type { ServiceParts } from "../environment/service-parts.ts";
import { receiptsOf } from "../journal/receipts.ts";
import { viewDelivery } from "../mailboxes/delivery-view.ts";
import { assertIndependent } from "./atomic-batch.ts";
import { parseMessageDraft } from "./message-draft.ts";
import {
  type AddressedDraft,
  type MessageSettings,
  type Planned,
  type SendAnswer,
  SendPlanner,
} from "./send-planner.ts";

/** The letters are read one by one, so that a bad one is answered for itself. */
const AnyLettersSchema = Type.Object(
  {
    messages: Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.batchMessagesMax }),
    atomic: BatchRequestSchema.properties.atomic,
  },
  { additionalProperties: false },
);
const parseBatch = shapeParserOf(AnyLettersSchema, "batch");

/** Accepting letters: who, where to, allowed, seen before, what does it do; then one commit. */
export class MessageService {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #planner: SendPlanner;

  constructor(parts: ServiceParts, settings: MessageSettings) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#planner = new SendPlanner(parts, settings);
  }

  async send(principal: Principal, input: unknown): Promise<SendAnswer> {
    return this.#send(principal, await this.#planner.address(principal, parseMessageDraft(input)));
  }

  /**
   * Each letter is answered for itself, in order, unless `atomic` asks for all or none. `statusOf` is the
   * wire's own table of codes.
   */
  async sendBatch(
    principal: Principal,
    input: unknown,
    statusOf: (error: RelayError) => number,
  ): Promise<readonly BatchItem[]> {
    const { messages, atomic } = parseBatch(input);
    if (atomic === true) return this.#sendAtomic(principal, messages);
    const results: Promise<BatchItem>[] = [];
    for (const message of messages) {
      const { sent } = await this.#begin(principal, message, results);
      results.push(sent.then(toItem, (reason: unknown) => toFailedItem(RelayError.from(reason), statusOf)));
    }
    return Promise.all(results);
  }

  async get(principal: Principal, id: string): Promise<MessageResponse> {
    const { tenant } = principal;
    const record = await this.#store.message(tenant, parseRecordId(id, "message_id"));
    if (record === undefined) throw new RelayError("not_found", `there is no message ${id}`);
    authorize(principal, "messages.read", { parties: [record.sender, record.recipient] });
    const delivery = await this.#store.delivery(tenant, id);
    const events = await this.#store.eventsOfMessage(tenant, id);
    return {
      message: JSON.parse(record.json) as Message,
      ...(delivery === undefined ? {} : { delivery: viewDelivery(delivery) }),
      ...(record.taskId === null ? {} : { task_id: record.taskId }),
      receipts: receiptsOf(events),
    };
  }

  async #send(principal: Principal, addressed: AddressedDraft): Promise<SendAnswer> {
    if (addressed.draft.kind === "heartbeat") return this.#heartbeat(principal, addressed);
    return decideAndCommit(this.#store, async (clash) => {
      const planned = await this.#planner.plan(principal, addressed, clash);
      return { changes: "plan" in planned ? planned.plan.changes : undefined, answer: toAnswer(planned) };
    });
  }

  /**
   * Plans one letter of a batch and hands it to the store without waiting for the disk, so that a batch is
   * accepted in its own order and shares its commits.
   */
  async #begin(
    principal: Principal,
    input: unknown,
    earlier: readonly Promise<unknown>[],
  ): Promise<{ readonly sent: Promise<SendAnswer> }> {
    try {
      const draft = parseMessageDraft(input);
      // It may answer a letter before it in the same batch, which must be there to be seen.
      if (draft.replyTo !== undefined || draft.taskId !== undefined) await Promise.all(earlier);
      const addressed = await this.#planner.address(principal, draft);
      if (draft.kind === "heartbeat") return { sent: this.#heartbeat(principal, addressed) };
      const planned = await this.#planner.plan(principal, addressed, undefined);
      return { sent: this.#commitOrStartOver(principal, addressed, planned) };
    } catch (reason) {
      return { sent: Promise.reject(RelayError.from(reason)) };
    }
  }

  async #commitOrStartOver(
    principal: Principal,
    addressed: AddressedDraft,
    planned: Planned,
  ): Promise<SendAnswer> {
    if ("before" in planned) return planned.before;
    const outcome = await this.#store.commit(planned.plan.changes);
    return outcome.committed ? toAnswer(planned) : this.#send(principal, addressed);
  }

  async #sendAtomic(principal: Principal, inputs: readonly unknown[]): Promise<readonly BatchItem[]> {
    const addressed: AddressedDraft[] = [];
    for (const [index, input] of inputs.entries()) {
      addressed.push(await naming(index, () => this.#addressAtomic(principal, input)));
    }
    return decideAndCommit<readonly BatchItem[]>(this.#store, async (clash) => {
      if (clash === "mailbox") {
        throw new RelayError(
          "mailbox_full",
          "messages: a mailbox has no room for all of them; nothing was sent",
        );
      }
      const planned: Planned[] = [];
      for (const [index, letter] of addressed.entries()) {
        planned.push(await naming(index, () => this.#planner.plan(principal, letter, clash)));
      }
      const plans = planned.map((each) => ("plan" in each ? each.plan.changes : undefined));
      assertIndependent(plans);
      const changes = plans.filter((each) => each !== undefined);
      return {
        changes: changes.length === 0 ? undefined : combine(principal.tenant, changes),
        answer: planned.map((each) => toItem(toAnswer(each))),
      };
    });
  }

  async #addressAtomic(principal: Principal, input: unknown): Promise<AddressedDraft> {
    const draft = parseMessageDraft(input);
    if (draft.kind !== "heartbeat") return this.#planner.address(principal, draft);
    throw new RelayError("invalid_argument", "type: a heartbeat cannot be part of an atomic batch");
  }

  /** Renews presence and is not kept as mail. */
  async #heartbeat(principal: Principal, addressed: AddressedDraft): Promise<SendAnswer> {
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
    return { created: true, message, messageJson: JSON.stringify(message), receipt };
  }
}

function toAnswer(planned: Planned): SendAnswer {
  if ("before" in planned) return planned.before;
  const { message, messageJson, receipt } = planned.plan;
  return { created: true, message, messageJson, receipt };
}

function toItem(answer: SendAnswer): BatchItem {
  return { status: answer.created ? 201 : 200, message: answer.message, receipt: answer.receipt };
}

function toFailedItem(error: RelayError, statusOf: (error: RelayError) => number): BatchItem {
  const { code, message, details } = error;
  return { status: statusOf(error), error: { code, message, ...(details === undefined ? {} : { details }) } };
}

/** An error of an atomic batch says which letter it is about. */
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
