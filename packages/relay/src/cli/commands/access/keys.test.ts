import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type CliRelay, LULU, openCliRelay } from "../../../../testing/cli-relay.ts";

const KEY = /^(key_[0-9a-f-]{36})\.[1-9A-HJ-NP-Za-km-z]{32,44}$/m;

function as(key: unknown) {
  return { env: { A2A_RELAY_API_KEY: String(key) } };
}

async function keyIds(relay: CliRelay, ...argv: readonly string[]): Promise<readonly string[]> {
  const { keys } = await relay.json(["keys", "list", ...argv]);
  return (keys as readonly { readonly key_id: string }[]).map(({ key_id }) => key_id);
}

describe("keys", () => {
  it("are made, shown once, used, rotated and revoked", async () => {
    await using relay = await openCliRelay();
    const created = await relay.ok(["keys", "create", "--agent", LULU, "--expires", "90d"]);
    const [key = "", id = ""] = KEY.exec(created) ?? [];
    assert.match(created, /^ {2}for +lulu@kamac$/m);
    assert.match(created, /^ {2}expires +2\d{3}-/m);
    assert.match(created, /not shown again/);
    assert.match(await relay.ok(["inbox", "--agent", "lulu"], as(key)), /no open messages/);
    assert.equal((await relay.run(["inbox", "--agent", "zhiwei"], as(key))).code, 1);
    const table = await relay.ok(["keys", "list", "--agent", LULU]);
    assert.match(table, /^ID +FOR +STATE +CREATED +EXPIRES/);
    assert.ok(table.includes(id) && !table.includes(key));
    const rotated = await relay.ok(["keys", "rotate", id, "--overlap", "1h"]);
    const [next = ""] = KEY.exec(rotated) ?? [];
    assert.match(rotated, new RegExp(`The old key, ${id}, ends at 2`));
    for (const either of [key, next]) await relay.ok(["inbox", "--agent", "lulu"], as(either));
    const [, nextId = ""] = KEY.exec(rotated) ?? [];
    const revoked = await relay.ok(["keys", "revoke", id]);
    assert.match(revoked, new RegExp(`^revoked ${id}\nIts successor, ${nextId}, goes on working`));
    const [advice = ""] = /keys revoke key_\S+$/m.exec(revoked) ?? [];
    const { code, stderr } = await relay.run(["inbox", "--agent", "lulu"], as(key));
    assert.notEqual(code, 0);
    assert.match(stderr, /was revoked at/);
    await relay.ok(["inbox", "--agent", "lulu"], as(next));
    assert.equal(await relay.ok(advice.split(" ")), `revoked ${nextId}\n`);
    assert.notEqual((await relay.run(["inbox", "--agent", "lulu"], as(next))).code, 0);
  });

  it("come as JSON, with verbs, and by tenant", async () => {
    await using relay = await openCliRelay();
    const argv = ["keys", "create", "--tenant", "工作室", "--verb", "events.read", "--verb", "keys.read"];
    const created = await relay.json(argv);
    assert.deepEqual([created["tenant"], created["verbs"]], ["工作室", ["events.read", "keys.read"]]);
    assert.deepEqual(await keyIds(relay, "--tenant", "工作室"), [created["key_id"]]);
    const own = await relay.json(["keys"], as(created["key"]));
    assert.equal(own["count"], 1, "a key acts in its own tenant");
    const { code, stderr } = await relay.run(["keys", "create"], as(created["key"]));
    assert.notEqual(code, 0);
    assert.match(stderr, /may not be used for keys\.write/);
    assert.equal((await relay.run(["keys", "create", "--verb", "fly"])).code, 1);
    assert.equal((await relay.run(["keys", "create", "--expires", "soon"])).code, 2);
  });
});

describe("keys create --sign", () => {
  it("makes a secret that signs, shown once beside the id that goes with each message", async () => {
    await using relay = await openCliRelay();
    const created = await relay.ok(["keys", "create", "--agent", LULU, "--sign"]);
    const [secret = ""] = /^whsec_[A-Za-z0-9+/]{43}=$/m.exec(created) ?? [];
    const [, id = ""] = /^ {2}id +(key_[0-9a-f-]{36})$/m.exec(created) ?? [];
    assert.match(created, /^ {2}use +signs messages$/m);
    assert.match(created, /not shown again/);
    const table = await relay.ok(["keys", "list", "--agent", LULU]);
    assert.match(table, /^ID +FOR +USE +STATE/);
    assert.match(table, new RegExp(`^${id} +lulu@kamac +sign +active`, "m"));
    assert.ok(secret !== "" && !table.includes(secret.slice(6)));
    assert.notEqual((await relay.run(["inbox", "--agent", "lulu"], as(secret))).code, 0);
    const rotated = await relay.json(["keys", "rotate", id]);
    assert.deepEqual([rotated["use"], rotated["replaces"]], ["sign", id]);
    const { code, stderr } = await relay.run(["keys", "create", "--sign"]);
    assert.equal(code, 1);
    assert.match(stderr, /agent_id: a signing key needs one/);
  });
});

describe("tenants", () => {
  it("are listed, and have their capabilities switched", async () => {
    await using relay = await openCliRelay();
    const { key } = await relay.json(["keys", "create", "--tenant", "acme"]);
    assert.match(
      await relay.ok(["tenants"]),
      /^TENANT +CAPABILITIES +CREATED\nacme +off +2.*\ndefault +off\n/,
    );
    assert.equal(
      await relay.ok(["tenants", "set", "acme", "--capabilities", "on"], as(key)),
      "acme: capabilities are on\n",
    );
    const { tenants } = await relay.json(["tenants", "list"], as(key));
    assert.deepEqual(
      (tenants as readonly { readonly tenant: string; readonly capabilities: string }[]).map(
        ({ tenant, capabilities }) => [tenant, capabilities],
      ),
      [["acme", "on"]],
    );
    const refused = await relay.run(["tenants", "set", "default", "--capabilities", "on"]);
    assert.match(refused.stderr, /A2A_RELAY_CAPABILITIES=on/);
    assert.equal((await relay.run(["tenants", "set", "acme", "--capabilities", "maybe"])).code, 2);
    assert.equal((await relay.run(["tenants", "set", "acme"])).code, 2);
  });

  it("are reached through the relay's address with the operator's key", async () => {
    await using relay = await openCliRelay();
    await relay.ok(["keys", "create", "--tenant", "acme"]);
    const inAcme = { env: { A2A_RELAY_URL: `${relay.url}/t/acme` } };
    await relay.ok(["agents", "register", "--id", LULU], inAcme);
    assert.equal((await relay.json(["agents"], inAcme))["count"], 1);
    assert.equal((await relay.json(["agents"]))["count"], 2);
  });
});

describe("agents register", () => {
  it("shows the agent's own key once", async () => {
    await using relay = await openCliRelay();
    const first = await relay.ok(["agents", "register", "--id", "kames@桌面"]);
    assert.match(first, /^its API key is key_/m);
    assert.match(first, /^ {2}public key +\S+ \(held by the relay\)$/m);
    assert.doesNotMatch(await relay.ok(["agents", "register", "--id", "kames@桌面"]), /API key/);
  });

  it("brings the agent's own key from a file, and never the private half", async () => {
    await using relay = await openCliRelay();
    const directory = await mkdtemp(join(tmpdir(), "agent-key-"));
    const file = join(directory, "key.pem");
    const { privateKey } = generateKeyPairSync("ed25519");
    await writeFile(file, privateKey.export({ format: "pem", type: "pkcs8" }));
    const register = ["agents", "register", "--id", "kames@桌面", "--private-key", file];
    const { agent } = await relay.json(register);
    const { custodial, pubkey_b58 } = agent as { readonly custodial: boolean; readonly pubkey_b58: string };
    assert.equal(custodial, false);
    const { key } = await relay.json(["keys", "create", "--tenant", "acme"]);
    assert.equal((await relay.run(register, as(key))).code, 1, "the proof is for another tenant");
    const there = await relay.json([...register, "--tenant", "acme"], as(key));
    assert.equal((there["agent"] as { readonly pubkey_b58: string }).pubkey_b58, pubkey_b58);
    await writeFile(file, "no key");
    const { code, stderr } = await relay.run(register);
    assert.equal(code, 2);
    assert.match(stderr, /--private-key .* cannot be read/);
    assert.equal((await relay.run(["agents", "register", "--private-key", file])).code, 2);
    await rm(directory, { recursive: true });
  });
});
