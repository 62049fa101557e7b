import type { A2aCaller } from "../src/core/a2a/a2a-request.ts";
import type { Principal } from "../src/core/access/principal.ts";
import { ZHIWEI } from "./core-on-memory.ts";

/** A caller of zhiwei's A2A endpoint, in A2A 1.0 by default. */
export function callerOf(principal: Principal, said: Partial<A2aCaller> = {}): A2aCaller {
  return {
    principal,
    agentId: ZHIWEI,
    version: "1.0",
    extensions: [],
    idempotencyKey: undefined,
    ...said,
  };
}

/** A send request that waits for the end of the task. */
export function askingFor(text: string, said: object = {}): object {
  return { message: { messageId: `m-${text}`, role: "ROLE_USER", parts: [{ text }] }, ...said };
}

/** A send request that returns at once. */
export function askingNow(text: string, said: object = {}): object {
  return askingFor(text, { configuration: { returnImmediately: true }, ...said });
}
