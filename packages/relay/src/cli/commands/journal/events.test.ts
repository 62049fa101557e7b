import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventView } from "@a2a-relay/protocol";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";
import { eventGist } from "./events.ts";

describe("events", () => {
  it("shows a page and how to go on", async () => {
    await using relay = await openCliRelay();
    const { stdout, stderr } = await relay.run(["events", "--limit", "1"]);
    assert.match(stdout, /^SEQ +TIME +EVENT.*\n1 +20\S+Z +agent\.registered .*\n$/);
    assert.match(stderr, /there are more: --since 1/);
    const page = await relay.json(["events", "--since", "1"]);
    assert.equal((page["events"] as readonly unknown[]).length, 3);
  });

  it("says what was refused, and which key was made", async () => {
    await using relay = await openCliRelay();
    const { key, key_id } = await relay.client.createKey({ agent_id: ZHIWEI });
    const denied = await relay.run(["inbox", "--agent", LULU, "--api-key", key]);
    assert.equal(denied.code, 1);
    assert.match(await relay.ok(["events", "--type", "access.denied"]), /WHAT\n.*mailbox\.read\n$/);
    assert.ok((await relay.ok(["events", "--type", "key.created"])).includes(key_id));
  });

  it("follows the journal as lines of JSON", async () => {
    await using relay = await openCliRelay();
    const ending = new AbortController();
    let sent = false;
    const { code, stdout } = await relay.run(["events", "--follow", "--since", "2", "--json"], {
      signal: ending.signal,
      onStdout: (text) => {
        if (text.includes("message.accepted")) ending.abort();
        else if (!sent) void relay.client.send({ from: LULU, to: ZHIWEI, body: "x" });
        sent = true;
      },
    });
    assert.equal(code, 130);
    const types = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type);
    assert.deepEqual(types, ["agent.registered", "key.created", "message.accepted"]);
  });
});

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
