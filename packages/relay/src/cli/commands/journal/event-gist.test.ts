import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventView } from "@a2a-relay/protocol";
import { eventGist } from "./event-gist.ts";

describe("the gist of an event", () => {
  const missing = {
    agent_id: "a2a-send:知微@studio",
    passed: false,
    missing_actions: ["a2a.send.知微@studio"],
  };
  const narrow = {
    agent_id: "a2a-respond:t1",
    passed: false,
    missing_actions: [],
    reason: "it is for another",
  };
  const gists: readonly (readonly [type: string, data: EventView["data"], gist: string])[] = [
    [
      "capability_check",
      { agent_id: "a2a:compact", passed: true, missing_actions: [] },
      "a2a:compact passed",
    ],
    ["capability_check", missing, "a2a-send:知微@studio refused without a2a.send.知微@studio"],
    ["capability_check", narrow, "a2a-respond:t1 refused (it is for another)"],
    ["access.denied", { verb: "keys.read" }, "keys.read"],
    ["access.denied", { tenant: "acme", key_id: "key_1" }, "in acme"],
    ["access.denied", { verb: "tasks.work", reason: "unknown_task" }, "tasks.work unknown_task"],
    ["access.unauthenticated", { reason: "unknown", transport: "http" }, "unknown"],
    ["key.revoked", { key_id: "key_1", agent_id: "lulu@kamac" }, "key_1"],
    ["capability.revoked", { capability_id: "cap_1", action: "a2a.compact" }, "cap_1 a2a.compact"],
    ["message.dead", { reason: "it expired" }, "it expired"],
    ["message.accepted", { digest: "00" }, ""],
  ];
  for (const [type, data, gist] of gists) {
    it(`of ${type} with ${Object.keys(data).join(", ")} is ${gist === "" ? "nothing" : gist}`, () => {
      assert.equal(eventGist({ type, data } as EventView), gist);
    });
  }
});
