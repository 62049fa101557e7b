import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

/** A name of this kind has no address: nothing is sent and nothing answers. */
const HOOK = "https://zhiwei.invalid/hook";

const POLLS_MAX = 1_000;

const register = (...more: readonly string[]) => ["agents", "register", "--id", ZHIWEI, ...more];

describe("push", () => {
  it("is asked for with a registration, which prints the secret once", async () => {
    await using relay = await openCliRelay();
    const first = await relay.ok(register("--callback-url", HOOK, "--push", "webhook", "--notice", "on"));
    assert.match(first, /^ {2}push +webhook$/m);
    assert.match(first, /pushes are signed with whsec_[A-Za-z0-9+/]{43}=\nKeep it now/);
    assert.doesNotMatch(await relay.ok(register("--push", "webhook")), /whsec_/);
    const shown = await relay.ok(["push", "show", "zhiwei"]);
    assert.match(shown, /^zhiwei@known-blocks1\n {2}push +webhook, notices only\n {2}callback +https:/);
    assert.match(shown, /^ {2}state +active$/m);
    await relay.ok(register("--push", "off"));
    assert.match(await relay.ok(["push", "show", "zhiwei"]), /disabled: the agent switched push off$/m);
    const { code, stderr } = await relay.run(register("--push", "off", "--push-ack", "maybe"));
    assert.deepEqual([code, /Allowed choices are on, off/.test(stderr)], [2, true]);
  });

  it("shows the outcome of each push, and replays since a time", async () => {
    await using relay = await openCliRelay();
    await relay.ok(register("--callback-url", HOOK, "--push", "webhook"));
    const sent = await relay.json(["send", "--from", "lulu", "--to", "zhiwei", "--body", "你好"]);
    const { message_id } = sent["receipt"] as { readonly message_id: string };
    let shown = "";
    for (let poll = 0; poll < POLLS_MAX && !/ 1 +no answer in /.test(shown); poll += 1) {
      shown = await relay.ok(["push", "show", "zhiwei", "--state", "pending", "--limit", "5"]);
    }
    assert.match(shown, /^MESSAGE +STATE +TRIES +LAST +NEXT +WHY$/m);
    const message = await relay.ok(["show", message_id]);
    assert.match(message, /^push pending after 1 try: there was no connection to the endpoint/m);
    assert.equal(
      await relay.ok(["push", "replay", "zhiwei", "--since", "2h"]),
      "1 message to zhiwei@known-blocks1 will be pushed again\n",
    );
    const replayed = await relay.json(["push", "replay", "zhiwei", "--since", "2100-01-01T00:00:00Z"]);
    assert.deepEqual(replayed, { agent_id: ZHIWEI, replayed: 0 });
    assert.equal((await relay.run(["push", "replay", "zhiwei", "--since", "gestern"])).code, 2);
    assert.equal((await relay.run(["push", "replay", "zhiwei"])).code, 2);
  });

  it("has its secret rotated", async () => {
    await using relay = await openCliRelay();
    assert.equal((await relay.run(["push", "rotate", "zhiwei"])).code, 1);
    await relay.ok(register("--callback-url", HOOK, "--push", "webhook"));
    const rotated = await relay.ok(["push", "rotate", "zhiwei", "--overlap", "1h"]);
    assert.match(rotated, /^whsec_\S+\nKeep it now: .*\nThe old secret signs too until 2/);
    assert.match(await relay.ok(["push", "show", "zhiwei"]), /^ {2}old secret +signs until 2/m);
  });
});
