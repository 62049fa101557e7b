import { LIMITS, parseRecordId, RelayError } from "@a2a-relay/protocol";

/** Before a context whose name no thread may have. */
const CARRIED = "ctx~";

/**
 * The thread of a context. A2A lets callers choose any text; a thread's name has a grammar, so that it can stand in
 * paths and logs. What is no such name is carried in one, from which it can be read again.
 */
export function threadOfContext(contextId: string): string {
  if (isThreadName(contextId) && !contextId.startsWith(CARRIED)) return contextId;
  const threadId = CARRIED + Buffer.from(contextId).toString("base64url");
  if (threadId.length <= LIMITS.idCharsMax && contextId.isWellFormed()) return threadId;
  throw new RelayError(
    "invalid_argument",
    `message.contextId: at most ${LIMITS.idCharsMax} characters and digits, or ${BYTES_MAX} bytes of any text`,
  );
}

/** The context as its caller wrote it. */
export function contextOfThread(threadId: string): string {
  return threadId.startsWith(CARRIED)
    ? Buffer.from(threadId.slice(CARRIED.length), "base64url").toString()
    : threadId;
}

const BYTES_MAX = Math.floor(((LIMITS.idCharsMax - CARRIED.length) * 3) / 4);

function isThreadName(contextId: string): boolean {
  try {
    parseRecordId(contextId, "contextId");
    return true;
  } catch {
    return false;
  }
}
