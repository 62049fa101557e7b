import type { Message, SendResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import type { LeasedMessage } from "./lease-renewal.ts";

export interface AgentMessageParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly mail: LeasedMessage;
}

/** A message that is no work to be done: a note, an alert, a reply, a status, a proposed memory, a notice. */
export class AgentMessage {
  readonly #parts: AgentMessageParts;

  constructor(parts: AgentMessageParts) {
    this.#parts = parts;
  }

  get id(): string {
    return this.message.id;
  }

  get from(): string {
    return this.message.from;
  }

  get kind(): Message["type"] {
    return this.message.type;
  }

  get subject(): string {
    return this.message.subject;
  }

  get text(): string {
    return this.message.body;
  }

  /** The task it tells about, if any. */
  get taskId(): string | undefined {
    return this.#parts.mail.item.task_id;
  }

  get message(): Message {
    return this.#parts.mail.item.message;
  }

  /** Aborted with a RelayError when the message is no longer this agent's to handle. */
  get signal(): AbortSignal {
    return this.#parts.mail.signal;
  }

  /** Answers in the same thread. */
  reply(text: string): Promise<SendResponse> {
    const { client, agentId, mail } = this.#parts;
    const { id, from, thread_id } = this.message;
    const message = { from: agentId, to: from, type: "reply", reply_to: id, thread_id, body: text } as const;
    return client.send(message, mail);
  }
}
