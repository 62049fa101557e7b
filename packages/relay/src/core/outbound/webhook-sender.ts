import { viewMailboxItem, viewNotice } from "../mailboxes/delivery-view.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import type { Outbound, PushReport } from "../ports/outbound.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import { withoutDeadSecret } from "../registration/push-endpoint.ts";
import type { AttemptOptions, PushSender } from "./push-outcome.ts";

/** Pushes the message, or a notice of it, to the agent's webhook. */
export class WebhookSender implements PushSender {
  readonly #outbound: Outbound;

  constructor(outbound: Outbound) {
    this.#outbound = outbound;
  }

  /** Receivers recognize a repeated message by its id, so `markSent` is not needed. */
  attempt(
    endpoint: PushEndpoint,
    message: MailboxMessage,
    { nowMs, signal }: AttemptOptions,
  ): Promise<PushReport | undefined> {
    const { url, tenant, agentId, isNotice } = endpoint;
    const { id: messageId, acceptedAtMs } = message.message;
    const content = isNotice ? { notice: viewNotice(message) } : { item: viewMailboxItem(message) };
    const secrets = secretsOf(endpoint, nowMs);
    const webhook = { url, tenant, agentId, messageId, acceptedAtMs, content, secrets };
    return this.#outbound.pushWebhook(webhook, signal);
  }
}

/** The secrets that sign now: the current one, and the previous one during its overlap. */
export function secretsOf(endpoint: PushEndpoint, nowMs: number): readonly string[] {
  const { secret, oldSecret } = withoutDeadSecret(endpoint, nowMs);
  return oldSecret === null ? [secret] : [secret, oldSecret];
}
