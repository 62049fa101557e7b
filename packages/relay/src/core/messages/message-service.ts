import { LIMITS, type MessageResponse, parseRecordId, type PushView, RelayError } from "@a2a-relay/protocol";
import { type Principal, speaksFor } from "../access/principal.ts";
import { receiptsOf } from "../journal/event-view.ts";
import { viewDelivery } from "../mailboxes/delivery-view.ts";
import { viewPush } from "../outbound/push-view.ts";
import type { MessageRecord } from "../ports/messages.ts";
import type { SendResult } from "./decide-send.ts";
import { send, type SendOptions, type SendParts, type SendSettings } from "./send.ts";
import { sendBatch, type SendOutcome } from "./send-batch.ts";
import { messageOf } from "../mechanisms/stored-json.ts";

/** Messages: sending them, and what became of one. Start reading at `send.ts`. */
export class MessageService {
  readonly #parts: SendParts;

  constructor(parts: Omit<SendParts, "settings">, settings: SendSettings) {
    this.#parts = { ...parts, settings };
  }

  send(principal: Principal, input: unknown, options: SendOptions = {}): Promise<SendResult> {
    return send(this.#parts, principal, input, options);
  }

  sendBatch(principal: Principal, input: unknown): Promise<readonly SendOutcome[]> {
    return sendBatch(this.#parts, principal, input);
  }

  async get(principal: Principal, id: string): Promise<MessageResponse> {
    const { guard, store } = this.#parts;
    const { tenant } = principal;
    const [record] = await store.messages.get(tenant, [parseRecordId(id, "message_id")]);
    // Authorised also without a record, so that the refusal does not tell whether there is one.
    const parties = record === undefined ? [] : [record.sender, record.recipient];
    const unseen = `there is no message ${id}`;
    await guard.authorize(principal, "messages.read", { parties, atMs: record?.acceptedAtMs }, unseen);
    if (record === undefined) throw new RelayError("not_found", unseen);
    const [delivery] = await store.deliveries.get(tenant, [id]);
    const push = await this.#pushOf(principal, record);
    return {
      message: messageOf(record),
      ...(delivery === undefined ? {} : { delivery: viewDelivery(delivery) }),
      ...(record.taskId === null ? {} : { task_id: record.taskId }),
      receipts: receiptsOf(await store.journal.ofMessages(tenant, [id])),
      ...(push === undefined ? {} : { push }),
    };
  }

  async #pushOf(
    principal: Principal,
    { tenant, id, recipient }: MessageRecord,
  ): Promise<PushView | undefined> {
    const { store } = this.#parts;
    const [push] = await store.pushes.get(tenant, [id]);
    if (push === undefined) return undefined;
    // The sender does not see what the recipient's server answered.
    const withAnswers = speaksFor(principal, recipient);
    return viewPush(push, await store.pushes.attempts(tenant, id, LIMITS.pushAttemptsMax), { withAnswers });
  }
}
