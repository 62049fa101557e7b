const MESSAGE = "msg_";
const THREAD = "thread_";

/**
 * The thread that a message begins is named after it, so that most threads need no entry of their own in a store's
 * index: they are found by their message. Undefined for messages whose id the relay did not make.
 */
export function ownThreadId(messageId: string): string | undefined {
  return messageId.startsWith(MESSAGE) ? THREAD + messageId.slice(MESSAGE.length) : undefined;
}

/** The one message that could have begun a thread of this name by itself. */
export function beginnerOf(threadId: string): string | undefined {
  return threadId.startsWith(THREAD) ? MESSAGE + threadId.slice(THREAD.length) : undefined;
}
