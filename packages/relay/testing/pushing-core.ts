import assert from "node:assert/strict";
import { LIMITS, type MessageResponse, type PushView, type RegisterRequest } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../src/core/access/principal.ts";
import { workUnit } from "../src/core/mechanisms/own-claims.ts";
import type { AttemptResult, EndedAttempt } from "../src/core/outbound/push-delivery.ts";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "./core-on-memory.ts";
import { FakeOutside } from "./fake-outside.ts";

export const HOOK = "https://zhiwei.example/收信";

/** A core that pushes to zhiwei's endpoint, step by step. */
export interface PushingCore extends CoreOnMemory {
  readonly outside: FakeOutside;
  readonly secret: string;
  /** Enqueues all messages to zhiwei. */
  enqueue(): Promise<void>;
  /** Calls zhiwei's endpoint with one message. */
  attempt(messageId: string, signal?: AbortSignal): Promise<EndedAttempt | "dropped" | "idle">;
  /** Drops what a disabled endpoint has pending, enqueues all messages to zhiwei, attempts what is due. */
  push(): Promise<readonly AttemptResult[]>;
  /** Time that zhiwei's pusher would sleep now. */
  waitMs(): Promise<number>;
  pushedMessage(messageId: string): Promise<MessageResponse & { readonly push: PushView }>;
}

export async function pushingCore(said: Partial<RegisterRequest> = {}): Promise<PushingCore> {
  const outside = new FakeOutside();
  const core = await coreOnMemory({}, outside);
  const wanted = { agent_id: ZHIWEI, callback_url: HOOK, push: "webhook", ...said };
  const { push_secret: secret } = await core.agents.register(core.operator, wanted);
  assert.ok(secret !== undefined, "the first registration with push tells the secret");
  const key = { tenant: DEFAULT_TENANT, agentId: ZHIWEI };
  const { pushDelivery } = core;
  const chooseDue = () => pushDelivery.chooseDue(key, new Set(), LIMITS.pushesOfEndpointMax);
  const claim = () => core.claim(workUnit("endpoint", key.tenant, key.agentId));
  const { signal: never } = new AbortController();
  const enqueue: PushingCore["enqueue"] = async () => {
    while (await pushDelivery.enqueue(key, await claim())) continue;
  };
  const attempt: PushingCore["attempt"] = async (messageId, signal = never) =>
    pushDelivery.attempt(key, messageId, { claim: await claim(), signal });
  return {
    ...core,
    outside,
    secret,
    enqueue,
    attempt,
    push: async () => {
      while (await pushDelivery.dropPending(key, await claim())) continue;
      await enqueue();
      const results: AttemptResult[] = [];
      for (;;) {
        const [messageId] = (await chooseDue()).due;
        if (messageId === undefined) return results;
        const ended = await attempt(messageId);
        results.push(typeof ended === "string" ? ended : await pushDelivery.record(ended));
      }
    },
    waitMs: async () => (await chooseDue()).waitMs,
    pushedMessage: async (messageId) => {
      const answer = await core.messages.get(core.operator, messageId);
      assert.ok(answer.push, `message ${messageId} was never pushed`);
      return { ...answer, push: answer.push };
    },
  };
}
