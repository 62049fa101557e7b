import { createHash } from "node:crypto";

/** An idempotency key for what is sent because of a message: the same message makes the same key, however long its id. */
export function messageKey(what: string, messageId: string): string {
  return `${what}-${createHash("sha256").update(messageId).digest("hex")}`;
}
