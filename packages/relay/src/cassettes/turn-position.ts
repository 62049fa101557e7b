import type { RelayClient } from "@a2a-relay/client";

export interface AnsweringMessage {
  readonly agentId: string;
  readonly taskId: string;
  readonly messageId: string;
}

/** The relay has all of it already; it only has to tell. */
const TELL_MS_MAX = 30_000;

/**
 * How many questions were answered when this message was taken, from what the relay tells of the task: so a process that
 * was started anew knows it too. A question that was asked twice, because its agent died right behind it, counts once.
 */
export async function answeredQuestions(
  client: RelayClient,
  { agentId, taskId, messageId }: AnsweringMessage,
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(TELL_MS_MAX)]);
  let answered = 0;
  for await (const { event } of client.streamTask(taskId, {}, { signal: bounded })) {
    // The agent itself says that it works; where another made the task go on, that was an answer.
    if (event.type === "task.working" && event.actor !== agentId) answered += 1;
    if (event.type === "message.leased" && event.message_id === messageId) break;
  }
  return answered;
}
