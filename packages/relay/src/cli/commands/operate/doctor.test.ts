import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { describe, it } from "node:test";
import { openCliRelay } from "../../../../testing/cli-relay.ts";
import { cliRun } from "../../../../testing/cli-run.ts";
import { nodeCheck } from "./doctor.ts";

describe("doctor", () => {
  it("finds a healthy relay healthy", async () => {
    await using relay = await openCliRelay();
    const stdout = await relay.ok(["doctor", "--data", tmpdir()]);
    assert.deepEqual(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split(/ +/, 2).join(" ")),
      ["ok node", "ok relay", "ok clock", "ok ready", "ok journal", "ok data"],
    );
  });

  it("says what to do when no relay answers, and exits with 1", async () => {
    const { code, stdout } = await cliRun([
      "doctor",
      "--relay",
      "http://127.0.0.1:1",
      "--data",
      tmpdir(),
      "--json",
    ]);
    assert.equal(code, 1);
    const { ok, checks } = JSON.parse(stdout) as {
      ok: boolean;
      checks: { name: string; ok: boolean; text: string }[];
    };
    assert.equal(ok, false);
    const relay = checks.find(({ name }) => name === "relay");
    assert.match(relay?.text ?? "", /Start it with `a2a-relay serve`/);
  });

  it("knows which Node is too old", () => {
    assert.equal(nodeCheck("24.1.0").ok, true);
    assert.match(nodeCheck("22.12.0").text, /Node 22\.12\.0 is too old; install Node 24/);
  });
});
