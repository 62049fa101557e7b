import { type QueueErrorBody, RELAY_ERROR_CODES, type RelayError } from "@a2a-relay/protocol";
import type { RouteFamily } from "../http/route.ts";

/** What this wire's clients know, the sentence, and the stable code beside it. */
export function toQueueErrorBody({ code, message, details }: RelayError): QueueErrorBody {
  return { kind: "error", message, code, ...(details === undefined ? {} : { details }) };
}

export const TASK_QUEUE_FAMILY: RouteFamily = {
  owns: (path) => path.startsWith("/a2a/"),
  errorBody: toQueueErrorBody,
  errorName: "TaskQueueError",
  errorSchema: {
    type: "object",
    required: ["kind", "message", "code"],
    properties: {
      kind: { const: "error" },
      message: { type: "string", description: "What was wrong, with which value, and what to do." },
      code: { type: "string", enum: RELAY_ERROR_CODES },
      details: { type: "object", additionalProperties: true },
    },
  },
};
