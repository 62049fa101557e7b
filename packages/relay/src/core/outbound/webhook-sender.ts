import { formatInstant, LIMITS, type PushPayload } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { type Outbound, OutboundFailure, type OutboundRequest } from "../ports/outbound-http.ts";
import { viewMailboxItem, viewNotice } from "../mailboxes/delivery-view.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import { errorOfFailure, outcomeOfAnswer, outcomeOfFailure } from "./push-outcome.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import type { AttemptOptions, PushSender, Tried } from "./push-sender.ts";
import { secretsOf, webhookHeaders } from "./standard-webhook.ts";

export interface WebhookSettings {
  /** The address the relay tells others; known once it listens. */
  readonly publicUrl: () => string;
  /** What the relay calls itself where it calls others. */
  readonly userAgent: string;
  /** How long a receiver may take to answer. */
  readonly pushTimeoutMs: number;
}

/** A signed POST with the message, or with the notice that there is one. */
export class WebhookSender implements PushSender {
  readonly #outbound: Outbound;
  readonly #settings: WebhookSettings;

  constructor(outbound: Outbound, settings: WebhookSettings) {
    this.#outbound = outbound;
    this.#settings = settings;
  }

  /** A receiver tells messages apart by their id, so that one may come twice and none has to be announced. */
  async attempt(
    endpoint: PushEndpoint,
    mail: MailboxMessage,
    { nowMs, signal }: AttemptOptions,
  ): Promise<Tried | undefined> {
    try {
      const answer = await this.#outbound.request({
        ...this.#requestOf(endpoint, mail, nowMs),
        url: endpoint.url,
        timeoutMs: this.#settings.pushTimeoutMs,
        answerBytesMax: LIMITS.pushAnswerBytesMax,
        signal,
      });
      return { status: answer.status, error: null, answer: answer.text, outcome: outcomeOfAnswer(answer) };
    } catch (reason) {
      if (!(reason instanceof OutboundFailure)) throw reason;
      if (reason.code === "aborted" && signal.aborted) return undefined;
      const outcome = outcomeOfFailure(reason);
      return { status: null, error: errorOfFailure(reason), answer: null, outcome };
    }
  }

  #requestOf(
    endpoint: PushEndpoint,
    mail: MailboxMessage,
    nowMs: number,
  ): Pick<OutboundRequest, "method" | "headers" | "body"> {
    const body = JSON.stringify(this.#payload(endpoint, mail));
    const { messageId } = mail.delivery;
    return {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": this.#settings.userAgent,
        ...webhookHeaders({ messageId, body }, secretsOf(endpoint, nowMs), nowMs),
      },
      body,
    };
  }

  /** Its time is when the message was accepted, so that every attempt says the same. */
  #payload(endpoint: PushEndpoint, mail: MailboxMessage): PushPayload {
    const timestamp = formatInstant(mail.message.acceptedAtMs);
    if (!endpoint.isNotice) return { type: "message.available", timestamp, data: viewMailboxItem(mail) };
    const data = { ...viewNotice(mail), mailbox_url: this.#mailboxUrl(endpoint) };
    return { type: "message.notice", timestamp, data };
  }

  /** For an agent that forgot how: where its mail is read. */
  #mailboxUrl({ tenant, agentId }: PushEndpoint): string {
    const below = tenant === DEFAULT_TENANT ? "" : `/t/${encodeURIComponent(tenant)}`;
    return `${this.#settings.publicUrl()}${below}/mailbox/${encodeURIComponent(agentId)}`;
  }
}
