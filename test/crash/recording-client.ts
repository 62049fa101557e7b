import type {
  AckResponse,
  BatchResponse,
  ErrorBody,
  EventsResponse,
  ItemResult,
  LeaseResponse,
  MailboxResponse,
  MessageResponse,
  QueueEntry,
  QueueResponse,
  SendResponse,
  TaskView,
  VerifyResponse,
} from "@a2a-relay/protocol";
import type {
  DeliveryActEntry,
  FinishEntry,
  Grant,
  History,
  JournalEvent,
  NewMessage,
  FetchEntry,
  Outcome,
  ReadEntry,
  SendEntry,
  TaskFetchEntry,
} from "./history.ts";
import type { Answer, Connection } from "../support/http-connection.ts";

/** The relay's answer while it stops or its database does not answer; whether it did what was asked is not said. */
const STOPPING = { status: 503, code: "unavailable" } as const;

interface Judged {
  readonly outcome: Outcome;
  readonly code?: string;
}

/** Calls the relay and writes down what it said. Knows the wire, and no rules. */
export class RecordingClient {
  readonly #connection: Connection;
  readonly #history: History;

  constructor(connection: Connection, history: History) {
    this.#connection = connection;
    this.#history = history;
  }

  /** The relay is gone: nothing more is to be heard from it. */
  get cutOff(): boolean {
    return this.#connection.broken;
  }

  async register(agentId: string, callbackUrl?: string): Promise<void> {
    const push = callbackUrl === undefined ? {} : { callback_url: callbackUrl, push: "webhook" };
    const answer = await this.#connection.call("POST", "/agents/register", { agent_id: agentId, ...push });
    if (answer?.status !== 201) throw new Error(`${agentId} could not register: ${JSON.stringify(answer)}`);
  }

  async send(message: NewMessage): Promise<Outcome> {
    const start = this.#history.begin();
    const answer = await this.#connection.call("POST", "/messages", wireOf(message));
    return this.#recordSend(start, message, answer?.status, answer);
  }

  /** Each message becomes its own entry. */
  async sendBatch(messages: readonly NewMessage[], batch: NonNullable<SendEntry["batch"]>): Promise<Outcome> {
    const start = this.#history.begin();
    const content = { messages: messages.map(wireOf), atomic: batch.atomic };
    const answer = await this.#connection.call("POST", "/messages/batch", content);
    const whole = judge(answer);
    const { results } = contentOf<BatchResponse>(answer, { results: [] });
    for (const [index, message] of messages.entries()) {
      const item = results[index];
      if (item === undefined) this.#history.record(start, { act: "send", message, batch, ...whole });
      else this.#recordSend(start, message, item.status, { status: item.status, body: item }, batch);
    }
    return whole.outcome;
  }

  /** Answers the entry and the cursor for the next read, if it was answered. */
  async read(
    mailbox: string,
    how: { readonly limit: number; readonly peek: boolean; readonly waitMs: number },
    cursor?: { readonly text: string; readonly from: number },
  ): Promise<
    | {
        readonly deliveries: ReadEntry["deliveries"];
        readonly cursor: { readonly text: string; readonly from: number };
      }
    | undefined
  > {
    const start = this.#history.begin();
    const query = new URLSearchParams({
      limit: String(how.limit),
      peek: String(how.peek),
      wait_ms: String(how.waitMs),
      ...(cursor === undefined ? {} : { since: cursor.text }),
    });
    const answer = await this.#connection.call("GET", `${mailboxPath(mailbox)}?${query.toString()}`);
    const judged = judge(answer);
    const { messages, cursor: text } = contentOf<MailboxResponse>(answer, { messages: [], cursor: "" });
    const deliveries = messages.map(({ message_id, sender_agent_id, message }) => ({
      messageId: message_id,
      sender: sender_agent_id,
      body: message.body,
    }));
    const about = { act: "read", mailbox, limit: how.limit, cursorFrom: cursor?.from, deliveries } as const;
    const end = this.#history.record(start, { ...about, ...judged });
    return judged.outcome === "ok" ? { deliveries, cursor: { text, from: end } } : undefined;
  }

  async lease(
    mailbox: string,
    request: {
      readonly max: number;
      readonly lease_ms?: number;
      readonly wait_ms: number;
      readonly worker: string;
    },
  ): Promise<readonly Grant[]> {
    const start = this.#history.begin();
    const answer = await this.#connection.call("POST", `${mailboxPath(mailbox)}/lease`, request);
    const judged = judge(answer);
    const { messages } = contentOf<LeaseResponse>(answer, { messages: [] });
    const grants = messages.map(({ message_id, task_id, sender_agent_id, message, lease }) => ({
      messageId: message_id,
      taskId: task_id,
      sender: sender_agent_id,
      body: message.body,
      leaseId: lease.id,
      attempt: lease.attempt,
    }));
    this.#history.record(start, { act: "lease", mailbox, grants, ...judged });
    return grants;
  }

  /** A reader's ack, without a lease. */
  async ackIds(mailbox: string, messageIds: readonly string[]): Promise<void> {
    const items = messageIds.map((messageId) => ({ messageId }));
    await this.#actOnItems("ack", mailbox, { message_ids: messageIds }, items);
  }

  async actOnLeases(
    act: "ack" | "release" | "renew",
    mailbox: string,
    grants: readonly Grant[],
  ): Promise<void> {
    const leases = grants.map(({ messageId, leaseId }) => ({ message_id: messageId, lease_id: leaseId }));
    const request = act === "renew" ? { leases, lease_ms: 5_000 } : { leases };
    await this.#actOnItems(act, mailbox, request, grants);
  }

  async fail(mailbox: string, { messageId, leaseId, attempt }: Grant, text: string): Promise<Outcome> {
    const start = this.#history.begin();
    const request = { message_id: messageId, lease_id: leaseId, reason: text };
    const answer = await this.#connection.call("POST", `${mailboxPath(mailbox)}/fail`, request);
    const judged = judge(answer);
    this.#history.record(start, { act: "fail", messageId, leaseId, attempt, text, ...judged });
    return judged.outcome;
  }

  async finish(
    by: FinishEntry["by"],
    { messageId, taskId = "", leaseId, attempt, sender }: Grant,
    worker: string,
    text: string,
  ): Promise<Outcome> {
    const start = this.#history.begin();
    const answer =
      by === "complete"
        ? await this.#connection.call("POST", `/tasks/${taskId}/complete`, { text, lease_id: leaseId })
        : await this.#connection.call("POST", "/messages", {
            from: worker,
            to: sender,
            type: "reply",
            reply_to: messageId,
            body: text,
            lease_id: leaseId,
          });
    const judged = judge(answer);
    this.#history.record(start, { act: "finish", by, taskId, messageId, leaseId, attempt, text, ...judged });
    return judged.outcome;
  }

  async leasedQueue(): Promise<readonly QueueEntry[]> {
    const answer = await this.#connection.call("GET", "/queue?state=leased&limit=100");
    return contentOf<QueueResponse>(answer, { entries: [], totals: {} }).entries;
  }

  async repair(
    act: "requeue" | "force_error",
    messageId: string,
    leaseId: string | undefined,
    text: string,
  ): Promise<void> {
    const start = this.#history.begin();
    const guard = leaseId === undefined ? {} : { lease_id: leaseId };
    const command =
      act === "requeue"
        ? { action: act, duplicate_risk: "operator_accepted", ...guard }
        : { action: act, message: text, ...guard };
    const content = { message_id: messageId, reason: "the worker is gone", command };
    const answer = await this.#connection.call("POST", "/repair", content);
    const reason = act === "force_error" ? { text } : {};
    this.#history.record(start, { act, messageId, leaseId, ...reason, ...judge(answer) });
  }

  async fetch(messageId: string): Promise<FetchEntry["found"]> {
    const start = this.#history.begin();
    const answer = await this.#connection.call("GET", `/messages/${messageId}`);
    if (answer === undefined || answer.status === STOPPING.status) return undefined;
    const found = answer.status === 200 ? foundOf(answer.body as MessageResponse) : undefined;
    this.#history.record(start, { act: "fetch", messageId, found });
    return found;
  }

  async fetchTask(taskId: string): Promise<TaskFetchEntry["found"]> {
    const start = this.#history.begin();
    const answer = await this.#connection.call("GET", `/tasks/${taskId}`);
    if (answer === undefined || answer.status === STOPPING.status) return undefined;
    const task = answer.status === 200 ? (answer.body as { readonly task: TaskView }).task : undefined;
    const found =
      task === undefined
        ? undefined
        : { state: task.state, text: task.status_text, resultMessageId: task.result_message_id };
    this.#history.record(start, { act: "fetch_task", taskId, found });
    return found;
  }

  async verify(): Promise<void> {
    const start = this.#history.begin();
    const answer = await this.#connection.call("GET", "/journal/verify");
    if (answer === undefined || answer.status === STOPPING.status) return;
    const { ok, problem, last_seq: lastSeq } = answer.body as VerifyResponse;
    this.#history.record(start, { act: "verify", ok: answer.status === 200 && ok, problem, lastSeq });
  }

  /** All of it, page by page. */
  async journal(): Promise<readonly JournalEvent[]> {
    const start = this.#history.begin();
    const events: JournalEvent[] = [];
    for (let since = "0", more = true; more;) {
      const answer = await this.#connection.call("GET", `/events?limit=500&since=${since}`);
      if (answer?.status !== 200) throw new Error(`the journal cannot be read: ${JSON.stringify(answer)}`);
      const page = answer.body as EventsResponse;
      for (const { seq, type, message_id, task_id } of page.events) {
        events.push({ seq, type, messageId: message_id, taskId: task_id });
      }
      since = page.cursor;
      more = page.has_more;
    }
    this.#history.record(start, { act: "journal", events });
    return events;
  }

  async #actOnItems(
    act: DeliveryActEntry["act"],
    mailbox: string,
    request: unknown,
    items: readonly (Pick<Grant, "messageId"> & Partial<Grant>)[],
  ): Promise<void> {
    const start = this.#history.begin();
    const answer = await this.#connection.call("POST", `${mailboxPath(mailbox)}/${act}`, request);
    const whole = judge(answer);
    const { results } = contentOf<AckResponse>(answer, { acknowledged: 0, results: [] });
    for (const [index, { messageId, leaseId, attempt }] of items.entries()) {
      const result = results[index];
      const judged = result === undefined ? whole : judgeItem(result);
      this.#history.record(start, { act, messageId, leaseId, attempt, ...judged });
    }
  }

  #recordSend(
    start: number,
    message: NewMessage,
    status: number | undefined,
    answer: Answer,
    batch?: SendEntry["batch"],
  ): Outcome {
    const judged = judge(answer);
    const { receipt } = contentOf<Partial<SendResponse>>(answer, {});
    this.#history.record(start, {
      act: "send",
      message,
      batch,
      status,
      messageId: receipt?.message_id,
      threadId: receipt?.thread_id,
      taskId: receipt?.task_id,
      ...judged,
    });
    return judged.outcome;
  }
}

function judge(answer: Answer): Judged {
  if (answer === undefined) return { outcome: "unknown" };
  if (answer.status < 300) return { outcome: "ok" };
  if (answer.status === STOPPING.status) return { outcome: "unknown", code: STOPPING.code };
  return judgeError(answer.body as ErrorBody);
}

/** What was answered, or what stands for no answer. */
function contentOf<Body>(answer: Answer, otherwise: Body): Body {
  return answer !== undefined && answer.status < 300 ? (answer.body as Body) : otherwise;
}

function judgeItem(result: ItemResult): Judged {
  return result.ok ? { outcome: "ok" } : judgeError(result);
}

function judgeError({ error: { code } }: ErrorBody): Judged {
  return { outcome: code === STOPPING.code ? "unknown" : "refused", code };
}

function foundOf({ message, delivery, push }: MessageResponse): FetchEntry["found"] {
  if (delivery === undefined) return undefined;
  return {
    sender: message.from,
    recipient: message.to,
    body: message.body,
    state: delivery.state,
    attempt: delivery.attempt,
    replyTo: message.reply_to,
    push: push?.state,
  };
}

function wireOf({ sender, recipient, kind, body, key, id, idempotent }: NewMessage): unknown {
  const idempotency =
    key !== undefined && idempotent ? { idempotency: { duplicate_safety: "idempotent", key } } : {};
  return {
    from: sender,
    to: recipient,
    type: kind,
    body,
    ...(id === undefined ? {} : { id }),
    ...(key !== undefined && !idempotent ? { idempotency_key: key } : idempotency),
  };
}

function mailboxPath(mailbox: string): string {
  return `/mailbox/${encodeURIComponent(mailbox)}`;
}
