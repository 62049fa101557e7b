import type { AgentId, MailboxItem, MailboxNotice } from "@a2a-relay/protocol";
import type { PushReport } from "./pushes.ts";

/** A message, or a notice of it, for the webhook of an agent. */
export interface Webhook {
  readonly url: string;
  readonly tenant: string;
  readonly agentId: AgentId;
  /** By it receivers recognize a repeated push. */
  readonly messageId: string;
  /** Every attempt sends the same content with the same time. */
  readonly acceptedAtMs: number;
  readonly content: { readonly item: MailboxItem } | { readonly notice: MailboxNotice };
  /** Each of them signs; the receiver verifies one signature. */
  readonly secrets: readonly string[];
}

/** Calls the webhooks of agents. */
export interface Webhooks {
  /** Undefined when the signal ended it before it had an outcome. */
  pushWebhook(
    webhook: Webhook,
    options: { readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<PushReport | undefined>;
}
