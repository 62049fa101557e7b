import { setTimeout as sleep } from "node:timers/promises";
import type { RelayClient } from "@a2a-relay/client";
import { RelayError, type TaskView } from "@a2a-relay/protocol";

/** Artifacts come without an event, so that somebody has to look for them. */
const LOOK_MS = 200;
const AWAY_MS = 1_000;

/**
 * A task again and again: at once when something happened to it, and otherwise every now and then. It ends with its
 * reader. While the relay is away it waits for it.
 */
export async function* taskLooks(
  client: RelayClient,
  taskId: string,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<TaskView, never> {
  const leaving = new AbortController();
  const ending = AbortSignal.any([signal, leaving.signal]);
  let nap = new AbortController();
  const listen = async (): Promise<void> => {
    for await (const _ of client.streamTask(taskId, {}, { signal: ending })) nap.abort();
  };
  // Without a stream there are still the looks.
  listen().catch(() => undefined);
  try {
    for (;;) {
      // Before the look: what happens between the look and the nap cuts the nap short.
      nap = new AbortController();
      const view = await look(client, taskId, signal);
      if (view !== undefined) yield view;
      const wake = AbortSignal.any([ending, nap.signal]);
      await sleep(view === undefined ? AWAY_MS : LOOK_MS, undefined, { signal: wake }).catch(() => undefined);
      signal.throwIfAborted();
    }
  } finally {
    leaving.abort();
  }
}

async function look(client: RelayClient, taskId: string, signal: AbortSignal): Promise<TaskView | undefined> {
  try {
    return await client.task(taskId, { signal });
  } catch (reason) {
    if (reason instanceof RelayError && reason.code === "unavailable") return undefined;
    throw reason;
  }
}
