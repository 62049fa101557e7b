import type { A2aCaller } from "../src/core/a2a/a2a-request.ts";
import type { Principal } from "../src/core/access/principal.ts";
import { ZHIWEI } from "./core-on-memory.ts";

/** Somebody who asks zhiwei over A2A, in 1.0 unless said otherwise. */
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

/** A message to ask with; the answer is waited for. */
export function askingFor(text: string, said: object = {}): object {
  return { message: { messageId: `m-${text}`, role: "ROLE_USER", parts: [{ text }] }, ...said };
}

/** The same, answered at once. */
export function askingNow(text: string, said: object = {}): object {
  return askingFor(text, { configuration: { returnImmediately: true }, ...said });
}
