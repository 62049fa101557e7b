import { createHmac } from "node:crypto";
import { formatInstant, operations, pathOf, type PushPayload } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../../core/access/principal.ts";
import { readSigningSecret } from "../../core/keys/key-maker.ts";
import type { Webhook } from "../../core/ports/outbound.ts";
import type { Post } from "./outbound-exchange.ts";

/** The request of a webhook, by Standard Webhooks: a signed POST of JSON. */
export function webhookPost(
  webhook: Webhook,
  at: { readonly publicUrl: string; readonly nowMs: number },
): Post {
  const { url, messageId, secrets } = webhook;
  const body = JSON.stringify(payloadOf(webhook, at.publicUrl));
  const signed = webhookHeaders({ messageId, body }, secrets, at.nowMs);
  return { url, headers: { "content-type": "application/json", ...signed }, body };
}

function payloadOf(webhook: Webhook, publicUrl: string): PushPayload {
  const { content, tenant, agentId } = webhook;
  const timestamp = formatInstant(webhook.acceptedAtMs);
  if ("item" in content) return { type: "message.available", timestamp, data: content.item };
  const below = tenant === DEFAULT_TENANT ? "" : `/t/${encodeURIComponent(tenant)}`;
  const mailbox_url = publicUrl + below + pathOf(operations.mailboxes.read, { agent_id: agentId });
  return { type: "message.notice", timestamp, data: { ...content.notice, mailbox_url } };
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
