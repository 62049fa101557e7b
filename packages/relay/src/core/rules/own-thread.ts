const MESSAGE = "msg_";

/** The thread that a message begins is named after it. Undefined for messages whose id the relay did not make. */
export function ownThreadId(messageId: string): string | undefined {
  return messageId.startsWith(MESSAGE) ? `thread_${messageId.slice(MESSAGE.length)}` : undefined;
}
