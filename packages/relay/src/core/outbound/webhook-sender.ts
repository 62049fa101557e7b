import { createHmac } from "node:crypto";
import { formatInstant, type PushPayload } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { readSigningSecret } from "../keys/key-maker.ts";
import { viewMailboxItem, viewNotice } from "../mailboxes/delivery-view.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import type { Outbound } from "../ports/outbound.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import type { AttemptOptions, AttemptReport, PushSender } from "./push-outcome.ts";

export interface WebhookSettings {
  /** The relay's public address; known once it listens. */
  readonly publicUrl: () => string;
}

/** Sends a signed POST with the message, or with a notice of it. */
export class WebhookSender implements PushSender {
  readonly #outbound: Outbound;
  readonly #settings: WebhookSettings;

  constructor(outbound: Outbound, settings: WebhookSettings) {
    this.#outbound = outbound;
    this.#settings = settings;
  }

  /** Receivers recognize a repeated message by its id, so `markSent` is not needed. */
  async attempt(
    endpoint: PushEndpoint,
    message: MailboxMessage,
    { nowMs, signal }: AttemptOptions,
  ): Promise<AttemptReport | undefined> {
    const body = JSON.stringify(this.#payload(endpoint, message));
    const { messageId } = message.delivery;
    const signed = webhookHeaders({ messageId, body }, secretsOf(endpoint, nowMs), nowMs);
    const headers = { "content-type": "application/json", ...signed };
    return this.#outbound.post({ url: endpoint.url, headers, body }, signal);
  }

  /** `timestamp` is when the message was accepted: every attempt sends the same payload. */
  #payload(endpoint: PushEndpoint, message: MailboxMessage): PushPayload {
    const timestamp = formatInstant(message.message.acceptedAtMs);
    if (!endpoint.isNotice) return { type: "message.available", timestamp, data: viewMailboxItem(message) };
    const data = { ...viewNotice(message), mailbox_url: this.#mailboxUrl(endpoint) };
    return { type: "message.notice", timestamp, data };
  }

  #mailboxUrl({ tenant, agentId }: PushEndpoint): string {
    const below = tenant === DEFAULT_TENANT ? "" : `/t/${encodeURIComponent(tenant)}`;
    return `${this.#settings.publicUrl()}${below}/mailbox/${encodeURIComponent(agentId)}`;
  }
}

/** The secrets that sign now: the current one, and the previous one during its overlap. */
export function secretsOf(endpoint: PushEndpoint, nowMs: number): readonly string[] {
  const { secret, oldSecret, oldSecretUntilMs } = endpoint;
  const isOldGood = oldSecret !== null && oldSecretUntilMs !== null && nowMs < oldSecretUntilMs;
  return isOldGood ? [secret, oldSecret] : [secret];
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

/** Percent-encodes the characters of an id that a header cannot carry. */
export function headerText(id: string): string {
  return id.replaceAll(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);
}

function signature(secret: string, signed: string): string {
  return `v1,${createHmac("sha256", readSigningSecret(secret)).update(signed).digest("base64")}`;
}
