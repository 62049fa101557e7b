import type { Message } from "@a2a-relay/protocol";

/**
 * The letter as the parameters of A2A's `message/send`, for mailbox clients that speak A2A JSON. Parts are
 * carried as they came; a plain body becomes one text part.
 */
export function toA2aPayload(message: Message): Readonly<Record<string, unknown>> {
  return {
    message: {
      kind: "message",
      role: "user",
      messageId: message.id,
      contextId: message.thread_id,
      ...(message.task_id === undefined ? {} : { taskId: message.task_id }),
      parts: message.parts ?? [{ kind: "text", text: message.body }],
    },
    metadata: { sender_agent_id: message.from, relay_target_agent_id: message.to, type: message.type },
  };
}
