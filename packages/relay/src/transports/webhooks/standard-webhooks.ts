import { createHmac } from "node:crypto";
import { formatInstant, LIMITS, type PushPayload } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../../core/access/principal.ts";
import { readSigningSecret } from "../../core/keys/key-maker.ts";
import {
  errorOfFailure,
  headerText,
  outcomeOfAnswer,
  outcomeOfFailure,
} from "../../core/outbound/http-push.ts";
import { type Outbound, OutboundFailure, type OutboundRequest } from "../../core/ports/outbound-http.ts";
import type { PushReport } from "../../core/ports/pushes.ts";
import type { Webhook, Webhooks } from "../../core/ports/webhooks.ts";

export interface WebhookSettings {
  /** The relay's public address; known once it listens. */
  readonly publicUrl: () => string;
  /** The `User-Agent` of the relay's requests. */
  readonly userAgent: string;
  /** Time for the whole answer. */
  readonly pushTimeoutMs: number;
}

/** Calls webhooks by Standard Webhooks: a signed POST of JSON. */
export class StandardWebhooks implements Webhooks {
  readonly #outbound: Outbound;
  readonly #settings: WebhookSettings;

  constructor(outbound: Outbound, settings: WebhookSettings) {
    this.#outbound = outbound;
    this.#settings = settings;
  }

  async pushWebhook(
    webhook: Webhook,
    { nowMs, signal }: { readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<PushReport | undefined> {
    try {
      const answer = await this.#outbound.request(this.#requestOf(webhook, nowMs, signal));
      return { status: answer.status, error: null, answer: answer.text, outcome: outcomeOfAnswer(answer) };
    } catch (reason) {
      if (!(reason instanceof OutboundFailure)) throw reason;
      if (reason.code === "aborted" && signal.aborted) return undefined;
      const outcome = outcomeOfFailure(reason);
      return { status: null, error: errorOfFailure(reason), answer: null, outcome };
    }
  }

  #requestOf(webhook: Webhook, nowMs: number, signal: AbortSignal): OutboundRequest {
    const { userAgent, pushTimeoutMs: timeoutMs } = this.#settings;
    const { url, messageId, secrets } = webhook;
    const body = JSON.stringify(this.#payload(webhook));
    const headers = {
      "content-type": "application/json",
      "user-agent": userAgent,
      ...webhookHeaders({ messageId, body }, secrets, nowMs),
    };
    const answerBytesMax = LIMITS.pushAnswerBytesMax;
    return { url, method: "POST", headers, body, timeoutMs, answerBytesMax, signal };
  }

  #payload(webhook: Webhook): PushPayload {
    const { content } = webhook;
    const timestamp = formatInstant(webhook.acceptedAtMs);
    if ("item" in content) return { type: "message.available", timestamp, data: content.item };
    const data = { ...content.notice, mailbox_url: this.#mailboxUrl(webhook) };
    return { type: "message.notice", timestamp, data };
  }

  #mailboxUrl({ tenant, agentId }: Webhook): string {
    const below = tenant === DEFAULT_TENANT ? "" : `/t/${encodeURIComponent(tenant)}`;
    return `${this.#settings.publicUrl()}${below}/mailbox/${encodeURIComponent(agentId)}`;
  }
}

/** The three headers of Standard Webhooks. The receiver verifies one of the signatures. */
export function webhookHeaders(
  message: { readonly messageId: string; readonly body: string },
  secrets: readonly string[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const id = headerText(message.messageId);
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signed = `${id}.${timestamp}.${message.body}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => signature(secret, signed)).join(" "),
  };
}

function signature(secret: string, signed: string): string {
  return `v1,${createHmac("sha256", readSigningSecret(secret)).update(signed).digest("base64")}`;
}
