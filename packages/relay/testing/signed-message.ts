import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { canonicalJson, type KeyCreated } from "@a2a-relay/protocol";
import { rootOperator } from "../src/core/access/principal.ts";
import type { Arrival } from "../src/core/messages/signed-inbox.ts";
import { type CoreOnMemory, LULU, ZHIWEI } from "./core-on-memory.ts";

/** What is shown once of a signing key. */
export interface SigningKeyShown {
  readonly key_id: string;
  readonly key: string;
}

/** By the path that names no tenant. */
export const PLAIN: Arrival = { transport: "http", tenant: undefined };

/** A signing key of lulu's, or what is said instead. */
export function newKey(core: CoreOnMemory, said: object = {}): Promise<KeyCreated> {
  return core.keys.create(rootOperator(), { agent_id: LULU, use: "sign", ...said });
}

let made = 0;

/** A note from lulu to zhiwei with all that a signed message brings, unlike any other, or what is said instead. */
export function messageOf(
  { key_id }: Pick<SigningKeyShown, "key_id">,
  said: object = {},
  nowMs: number = Date.now(),
) {
  made += 1;
  const now = new Date(nowMs).toISOString();
  return {
    version: "a2a.v1",
    id: `msg_signed_${made}`,
    from: LULU,
    to: ZHIWEI,
    body: "知微你好",
    created_at: now,
    thread_id: "线一",
    key_id,
    nonce: `nonce-${made}`,
    signed_at: now,
    ...said,
  };
}

/** The way that a sender signs which knows the relay's documents alone. */
export function sign<NewMessage extends object>({ key }: SigningKeyShown, message: NewMessage) {
  assert.ok(!("signature" in message), "what is signed has no signature yet");
  const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", secret).update(canonicalJson(message), "utf8").digest("base64");
  return { ...message, signature: `v1,${hmac}` };
}

/** A message of its own, signed at the core's time. */
export function signed(core: CoreOnMemory, key: SigningKeyShown, said: object = {}) {
  return sign(key, messageOf(key, said, core.clock.nowMs()));
}
