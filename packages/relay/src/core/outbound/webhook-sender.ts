import { createHmac } from "node:crypto";
import { formatInstant, LIMITS, type PushPayload } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { type Outbound, OutboundFailure, type OutboundRequest } from "../ports/outbound-http.ts";
import { viewMailboxItem, viewNotice } from "../mailboxes/delivery-view.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import {
  type AttemptOptions,
  errorOfFailure,
  outcomeOfAnswer,
  outcomeOfFailure,
  type PushSender,
  type Tried,
} from "./push-outcome.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import { readSigningSecret } from "../keys/signing-secret.ts";

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

/** Those that sign at this time: the endpoint's own, and the one before it while that is still good. */
export function secretsOf(endpoint: PushEndpoint, nowMs: number): readonly string[] {
  const { secret, oldSecret, oldSecretUntilMs } = endpoint;
  const isOldGood = oldSecret !== null && oldSecretUntilMs !== null && nowMs < oldSecretUntilMs;
  return isOldGood ? [secret, oldSecret] : [secret];
}

/** The three headers of Standard Webhooks: who verifies one of the signatures knows who wrote the body, and when. */
export function webhookHeaders(
  message: { readonly messageId: string; readonly body: string },
  secrets: readonly string[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const id = webhookId(message.messageId);
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signed = `${id}.${timestamp}.${message.body}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => signature(secret, signed)).join(" "),
  };
}

/** The message's id, the same for every attempt. What a header cannot carry is written as URLs do. */
function webhookId(messageId: string): string {
  return messageId.replaceAll(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);
}

function signature(secret: string, signed: string): string {
  return `v1,${createHmac("sha256", readSigningSecret(secret)).update(signed).digest("base64")}`;
}
