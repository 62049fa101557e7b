import { RelayAgent } from "../src/agent/relay-agent.ts";
import type { RelayAgentOptions } from "../src/agent/relay-agent-options.ts";
import type { RelayClient } from "../src/client/relay-client.ts";
import { FaultyRelay } from "./faulty-relay.ts";

export const WORKER = "translator@demo";
export const ASKER = "asker@demo";

export interface AgentSetup extends AsyncDisposable {
  readonly relay: FaultyRelay;
  /** Past all faults. */
  readonly direct: RelayClient;
  readonly agent: RelayAgent;
  /** The errors that `onError` got, as "activity code" or "activity message". */
  readonly errors: string[];
  /** Asks the agent for something and answers with the task's id. */
  ask(body: string, more?: object): Promise<string>;
  /** Resolves with the task once it is in the state. */
  reaches(taskId: string, state: string): ReturnType<RelayClient["task"]>;
}

/** An agent behind a faulty wire, an asker past it, and delays short enough for tests. */
export async function setupAgent(options: Partial<RelayAgentOptions> = {}): Promise<AgentSetup> {
  const relay = await FaultyRelay.start();
  const { direct } = relay;
  const errors: string[] = [];
  const agent = new RelayAgent({
    url: relay.wire.url,
    id: WORKER,
    retries: 1,
    retryDelayMs: 5,
    retryDelayMsMax: 20,
    // The wire speaks plain requests and answers only.
    transport: "poll",
    onError: (error, activity) => {
      errors.push(`${activity} ${"code" in error ? String(error.code) : error.message}`);
    },
    ...options,
  });
  await direct.register({ agent_id: ASKER });
  return {
    relay,
    direct,
    agent,
    errors,
    async ask(body, more = {}) {
      const message = { from: ASKER, to: WORKER, type: "request", body, ...more } as const;
      const { receipt } = await relay.direct.send(message);
      return receipt.task_id ?? "";
    },
    async reaches(taskId, state) {
      for (let since: string | undefined; ;) {
        const task = await relay.direct.task(taskId);
        if (task.state === state) return task;
        const query = { wait_ms: 1_000, ...(since === undefined ? {} : { since }) };
        since = (await relay.direct.events(query)).cursor;
      }
    },
    async [Symbol.asyncDispose]() {
      await agent.stop({ timeoutMs: 0 });
      await relay[Symbol.asyncDispose]();
    },
  };
}

/** Resolves with the code of the reason once the signal is aborted. */
export async function aborted({ signal }: { readonly signal: AbortSignal }): Promise<unknown> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return (signal.reason as { readonly code?: unknown }).code;
}

/** A promise and the way to settle it. */
export interface Gate<T = void> {
  readonly passed: Promise<T>;
  open(value: T): void;
}

export function gate<T = void>(): Gate<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { passed: promise, open: resolve };
}
