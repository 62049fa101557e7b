import { memberJson } from "./json-member.ts";
import type { MessageRecord } from "../ports/messages.ts";

/**
 * The message as the parameters of A2A's `message/send`, for mailbox clients that speak A2A JSON. Parts are
 * carried as they came; a plain body becomes one text part.
 */
export function a2aPayloadJson(message: MessageRecord): string {
  const { id, sender, recipient, kind, threadId, taskId, json } = message;
  const task = taskId === null ? "" : `"taskId":${JSON.stringify(taskId)},`;
  const parts = memberJson(json, "parts") ?? `[{"kind":"text","text":${memberJson(json, "body") ?? '""'}}]`;
  return (
    `{"message":{"kind":"message","role":"user","messageId":${JSON.stringify(id)},` +
    `"contextId":${JSON.stringify(threadId)},${task}"parts":${parts}},` +
    `"metadata":{"sender_agent_id":${JSON.stringify(sender)},` +
    `"relay_target_agent_id":${JSON.stringify(recipient)},"type":"${kind}"}}`
  );
}
