import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const CAPABILITY_ID = /cap_\S+/;

describe("capabilities grant", () => {
  it("grants what is said, and shows the token", async () => {
    await using relay = await openCliRelay();
    const stdout = await relay.ok(["capabilities", "grant", "a2a.send.知微", "--subject", "lulu"]);
    assert.match(
      stdout,
      /^granted a2a\.send\.知微 to lulu@kamac\n +id +cap_\S+\n +action +a2a\.send\.\w{32,44}\n$/,
    );
    const scope = JSON.stringify({ duplicate_risk: "operator-accepted", ticket: "票-7" });
    const flags = ["--subject", LULU, "--scope", scope, "--max-uses", "3", "--delegable", "--expires", "2h"];
    const granted = await relay.json(["capabilities", "grant", "a2a.repair.requeue", ...flags]);
    assert.deepEqual(
      [granted["subject"], granted["action"], granted["granted_by"]],
      [LULU, "a2a.repair.requeue", "operator"],
    );
    assert.deepEqual(granted["scope"], {
      duplicate_risk: "operator_accepted",
      ticket: "票-7",
      max_uses: 3,
      delegable: true,
    });
    assert.ok(Date.parse(String(granted["expires_at"])) > Date.now());
  });

  it("refuses a wrong command line without asking the relay, and tells what the relay refuses", async () => {
    await using relay = await openCliRelay();
    const grant = ["capabilities", "grant", "a2a.send.zhiwei"];
    for (const flags of [[], ["--subject", LULU, "--scope", "[]"], ["--subject", LULU, "--scope", "{"]]) {
      assert.deepEqual((await relay.run([...grant, ...flags])).code, 2);
    }
    const { code, stdout, stderr } = await relay.run([...grant.slice(0, 2), "a2a.send.*", "--subject", LULU]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /no wildcards/);
  });

  it("names the missing capability in an error, and none that the agent has", async () => {
    await using relay = await openCliRelay();
    await relay.ok(["keys", "create", "--tenant", "acme"]);
    await relay.ok(["tenants", "set", "acme", "--capabilities", "on"]);
    const acme = { env: { A2A_RELAY_URL: `${relay.url}/t/acme` } };
    const { api_key } = await relay.json(["agents", "register", "--id", LULU], acme);
    await relay.ok(["agents", "register", "--id", ZHIWEI], acme);
    await relay.ok(["capabilities", "grant", `a2a.send.${ZHIWEI}`, "--subject", LULU], acme);
    const send = ["send", "--from", LULU, "--to", ZHIWEI, "--type", "request", "--body", "x"];
    const { code, stderr } = await relay.run([...send, "--api-key", String(api_key)]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(`^error: .* capabilities grant a2a.recv.${LULU} --subject ${ZHIWEI}\\n$`),
    );
    assert.match(
      await relay.ok(["events", "--type", "capability_check"], acme),
      new RegExp(`a2a-send:${ZHIWEI} refused without a2a.recv.${LULU}\\n$`),
    );
  });
});

describe("capabilities list, usage and revoke", () => {
  it("show tables, and JSON on request", async () => {
    await using relay = await openCliRelay();
    assert.equal(await relay.ok(["capabilities"]), "no capabilities\n");
    const flags = ["--subject", "知微", "--max-uses", "5"];
    const id =
      CAPABILITY_ID.exec(await relay.ok(["capabilities", "grant", "a2a.recv.lulu", ...flags]))?.[0] ?? "";
    assert.match(
      await relay.ok(["capabilities", "list"]),
      new RegExp(
        `^ID +SUBJECT +ACTION +SCOPE +GRANTED BY\\n${id} +${ZHIWEI} +a2a\\.recv\\.lulu +.* +operator\\n$`,
      ),
    );
    assert.match(await relay.ok(["capabilities", "usage"]), new RegExp(`${id} .* yes +0 of 5\\n$`));
    assert.equal(await relay.ok(["capabilities", "revoke", id]), `revoked ${id}\n`);
    assert.equal(await relay.ok(["capabilities", "revoke", id]), `${id} had been revoked before\n`);
    assert.match(await relay.ok(["capabilities", "usage"]), / no +0 of 5/);
    const { grants } = await relay.json(["capabilities", "usage"]);
    assert.deepEqual(
      (grants as readonly Readonly<Record<string, unknown>>[]).map((each) => [each["id"], each["revoked"]]),
      [[id, true]],
    );
    const { capabilities } = await relay.json(["capabilities", "list"]);
    assert.equal((capabilities as readonly unknown[]).length, 1);
  });
});
