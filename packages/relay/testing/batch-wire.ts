import type { BatchWire, SentItem } from "../src/core/messages/message-service.ts";

/** A batch and its results as the objects they are. Messages that are refused get the status. */
export function inObjects(input: unknown, status = 400): BatchWire<readonly SentItem[]> {
  return { read: () => input, statusOf: () => status, write: (items) => items };
}
