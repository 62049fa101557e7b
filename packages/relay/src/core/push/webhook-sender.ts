import { formatInstant, type PushPayload } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../access/principal.ts";
import type { OutboundRequest } from "../environment/outbound.ts";
import { viewMail, viewNotice } from "../mailboxes/delivery-view.ts";
import type { Mail } from "../mailboxes/mailbox-store.ts";
import { outcomeOfAnswer } from "./push-outcome.ts";
import type { PushEndpoint } from "./push-record.ts";
import type { PushSender } from "./push-sender.ts";
import { secretsOf, webhookHeaders } from "./standard-webhook.ts";

export interface WebhookSettings {
  /** The address the relay tells others; known once it listens. */
  readonly publicUrl: () => string;
  /** What the relay calls itself where it calls others. */
  readonly userAgent: string;
}

/** A signed POST with the letter, or with the notice that there is one. */
export class WebhookSender implements PushSender {
  readonly outcomeOf: PushSender["outcomeOf"] = outcomeOfAnswer;
  readonly #settings: WebhookSettings;

  constructor(settings: WebhookSettings) {
    this.#settings = settings;
  }

  requestOf(
    endpoint: PushEndpoint,
    mail: Mail,
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

  /** Its time is when the letter was accepted, so that every attempt says the same. */
  #payload(endpoint: PushEndpoint, mail: Mail): PushPayload {
    const timestamp = formatInstant(mail.message.acceptedAtMs);
    if (!endpoint.isNotice) return { type: "message.available", timestamp, data: viewMail(mail) };
    const data = { ...viewNotice(mail), mailbox_url: this.#mailboxUrl(endpoint) };
    return { type: "message.notice", timestamp, data };
  }

  /** For an agent that forgot how: where its mail is read. */
  #mailboxUrl({ tenant, agentId }: PushEndpoint): string {
    const below = tenant === DEFAULT_TENANT ? "" : `/t/${encodeURIComponent(tenant)}`;
    return `${this.#settings.publicUrl()}${below}/mailbox/${encodeURIComponent(agentId)}`;
  }
}
