import type { Message, SendResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import type { LeasedMessage } from "./lease-renewal.ts";

export interface AgentMessageParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly leased: LeasedMessage;
}

/** A message that is no task: a note, an alert, a reply, a status, a proposed memory, a notice. */
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

  /** The task that the message is about, if any. */
  get taskId(): string | undefined {
    return this.#parts.leased.item.task_id;
  }

  get message(): Message {
    return this.#parts.leased.item.message;
  }

  /** Aborted with a RelayError when this agent no longer holds the message. */
  get signal(): AbortSignal {
    return this.#parts.leased.signal;
  }

  /** Answers in the same thread. */
  reply(text: string): Promise<SendResponse> {
    const { client, agentId, leased } = this.#parts;
    const { id, from, thread_id } = this.message;
    const message = { from: agentId, to: from, type: "reply", reply_to: id, thread_id, body: text } as const;
    return client.send(message, leased);
  }
}
