import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { LULU, openCliRelay } from "../../../../testing/cli-relay.ts";

describe("agents", () => {
  it("lists all of them, also when only the group is named", async () => {
    await using relay = await openCliRelay();
    for (const argv of [["agents"], ["agents", "list"]]) {
      const stdout = await relay.ok(argv);
      assert.match(stdout, /^ID +NAME +PRESENCE +ALIASES/);
      assert.match(stdout, /zhiwei@known-blocks1 +知微 +unknown +zhiwei/);
    }
    assert.equal((await relay.json(["agents"]))["count"], 2);
  });

  it("registers one with a card, aliases and skills, then shows, beats and removes it", async () => {
    await using relay = await openCliRelay();
    const directory = await mkdtemp(join(tmpdir(), "card-"));
    const card = join(directory, "card.json");
    await writeFile(card, JSON.stringify({ description: "说中文" }));
    const flags = [
      "--alias",
      "kam",
      "--skill",
      "review:Reads code",
      "--skill",
      "talk",
      "--ttl",
      "1m",
      "--card",
      card,
    ];
    await relay.ok(["agents", "register", "--id", "kames@kamac", "--display-name", "kames", ...flags]);
    await rm(directory, { recursive: true });
    const shown = await relay.json(["agents", "show", "kam"]);
    assert.deepEqual(shown["skills"], [{ id: "review", description: "Reads code" }, { id: "talk" }]);
    assert.equal(shown["ttl_ms"], 60_000);
    assert.equal(await relay.ok(["agents", "heartbeat", "kam"]), "kames@kamac is online\n");
    assert.equal(await relay.ok(["agents", "remove", "kames@kamac"]), "removed kames@kamac\n");
    assert.equal((await relay.run(["agents", "show", "kames@kamac"])).code, 1);
  });

  it("says what is wrong with a card", async () => {
    await using relay = await openCliRelay();
    const { code, stderr } = await relay.run(["agents", "register", "--card", "./no-such-card.json"]);
    assert.equal(code, 2);
    assert.match(stderr, /--card \.\/no-such-card\.json cannot be read/);
  });
});

describe("contacts", () => {
  it("are agents under another name", async () => {
    await using relay = await openCliRelay();
    await relay.ok(["contacts", "add", "--id", "kames@kamac", "--display-name", "kames", "--alias", "kam"]);
    const { contacts } = await relay.json(["contacts", "list"]);
    assert.deepEqual(
      (contacts as readonly { readonly agent_id: string }[]).map((contact) => contact.agent_id).toSorted(),
      ["kames@kamac", LULU, "zhiwei@known-blocks1"],
    );
    assert.match(await relay.ok(["contacts", "show", "kam"]), /^kames@kamac\n {2}name +kames\n/);
    assert.deepEqual(await relay.json(["contacts", "remove", "kames@kamac"]), { removed: "kames@kamac" });
  });
});
