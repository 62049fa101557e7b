import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { VerifyResponse } from "@a2a-relay/protocol";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";
import { cliRun } from "../../../../testing/cli-run.ts";

const NOWHERE = { env: { A2A_RELAY_URL: "http://127.0.0.1:1" } };

async function write(relay: CliRelay, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await relay.client.send({ from: LULU, to: ZHIWEI, body: `第 ${index} 封` });
  }
}

/** More events than one answer holds. */
async function fill(relay: CliRelay): Promise<void> {
  const messages = Array.from({ length: 500 }, () => ({ from: LULU, to: ZHIWEI, body: "x" }));
  for (let round = 0; round < 3; round += 1) await relay.client.sendBatch({ messages });
}

async function linesOf(path: string): Promise<readonly string[]> {
  return (await readFile(path, "utf8")).trimEnd().split("\n");
}

describe("audit", () => {
  let folder: string;
  let files = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "a2a-relay-audit-"));
  });
  after(() => rm(folder, { recursive: true }));

  function newFile(): string {
    files += 1;
    return join(folder, `export-${files}.jsonl`);
  }

  describe("verify", () => {
    it("says that the chain is unbroken, and which anchor to keep outside the relay", async () => {
      await using relay = await openCliRelay();
      const { last_seq, head } = await relay.client.verifyJournal();
      const stdout = await relay.ok(["audit", "verify"]);
      assert.match(stdout, new RegExp(`^the chain of ${last_seq} events is unbroken\n`));
      assert.match(stdout, new RegExp(`head +${last_seq}:${head}\n`));
      assert.match(stdout, /anchor +(none is kept|\d+:[0-9a-f]{64} of 20)/);
      const answer = await relay.json(["audit", "verify"]);
      assert.deepEqual([answer["ok"], answer["head"]], [true, head]);
    });

    it("holds the relay against an anchor that was noted", async () => {
      await using relay = await openCliRelay();
      const { last_seq, head } = await relay.client.verifyJournal();
      await write(relay, 2);
      await relay.ok(["audit", "verify", "--anchor", `${last_seq}:${head.toUpperCase()}`]);
      const missing = await relay.run(["audit", "verify", "--anchor", `${last_seq + 5}:${head}`]);
      assert.equal(missing.code, 1);
      assert.match(missing.stderr, /^error: the anchor has seen event \d+, but .* 3 events are missing/);
      const other = await relay.run(["audit", "verify", "--anchor", `1:${head}`, "--json"]);
      assert.equal(other.code, 1);
      const answer = JSON.parse(other.stdout) as VerifyResponse;
      assert.equal(answer.ok, false);
      assert.match(answer.problem ?? "", /event 1 with another hash/);
    });

    for (const anchor of ["40", "0:" + "0".repeat(64), "40:xyz", `-1:${"0".repeat(64)}`]) {
      it(`takes ${anchor.slice(0, 8)} for no anchor`, async () => {
        const { code, stderr } = await cliRun(["audit", "verify", "--anchor", anchor], NOWHERE);
        assert.equal(code, 2);
        assert.match(stderr, /Expected the number of an event/);
      });
    }
  });

  describe("export", () => {
    it("writes one event a line and an anchor record, for its owner's eyes, which verify takes", async () => {
      await using relay = await openCliRelay();
      await write(relay, 3);
      const path = newFile();
      const { last_seq, head } = await relay.client.verifyJournal();
      assert.equal(
        await relay.ok(["audit", "export", "--out", path]),
        `exported events 1 to ${last_seq}, head ${last_seq}:${head}\n`,
      );
      if (process.platform !== "win32") assert.equal((await stat(path)).mode & 0o077, 0);
      const lines = await linesOf(path);
      assert.equal(lines.length, last_seq + 1);
      assert.match(
        lines.at(-2) ?? "",
        /"type":"message.accepted","at":"20\S+Z","tenant":"default","actor":"lulu@kamac"/,
      );
      assert.match(
        lines.at(-1) ?? "",
        new RegExp(`^{"anchor":{"tenant":"default","seq":${last_seq},"hash":"${head}"`),
      );
      const checked = await cliRun(
        ["audit", "verify", "--file", path, "--anchor", `${last_seq}:${head}`],
        NOWHERE,
      );
      assert.equal(checked.code, 0, checked.stderr);
      assert.match(
        checked.stdout,
        new RegExp(`^the chain of ${last_seq} events is unbroken\n +tenant +default\n`),
      );
    });

    it("goes to stdout without a file, and can be piped into verify", async () => {
      await using relay = await openCliRelay();
      const { code, stdout, stderr } = await relay.run(["audit", "export"]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /^exported events 1 to \d+, head/);
      const checked = await cliRun(["audit", "verify", "--file", "-", "--json"], {
        ...NOWHERE,
        stdin: stdout,
      });
      assert.equal(checked.code, 0, checked.stderr);
      assert.equal((JSON.parse(checked.stdout) as VerifyResponse).ok, true);
    });

    it("goes on where another ended; the parts make a whole", async () => {
      await using relay = await openCliRelay();
      const [first, second] = [newFile(), newFile()];
      const { last_seq } = await relay.client.verifyJournal();
      await relay.ok(["audit", "export", "--out", first]);
      await write(relay, 2);
      const summary = await relay.json(["audit", "export", "--since", String(last_seq), "--out", second]);
      assert.deepEqual([summary["file"], summary["first_seq"], summary["events"]], [second, last_seq + 1, 2]);
      const both = (await readFile(first, "utf8")) + (await readFile(second, "utf8"));
      const whole = await cliRun(["audit", "verify", "--file", "-"], { ...NOWHERE, stdin: both });
      assert.equal(whole.code, 0, whole.stderr);
      const nothing = await relay.run(["audit", "export", "--since", String(last_seq + 2)]);
      assert.deepEqual([nothing.code, nothing.stdout, nothing.stderr], [0, "", "no events\n"]);
      const beyond = await relay.run(["audit", "export", "--since", "9999"]);
      assert.equal(beyond.code, 1);
      assert.match(beyond.stderr, /the journal ends with event/);
    });

    it("takes more events than fit on one page, up to the end as it was when it began", async () => {
      await using relay = await openCliRelay();
      await fill(relay);
      const { last_seq } = await relay.client.verifyJournal();
      let sending: Promise<void> | undefined;
      const { stdout } = await relay.run(["audit", "export"], {
        onStdout: () => {
          sending ??= write(relay, 3);
        },
      });
      await sending;
      assert.equal(stdout.trimEnd().split("\n").length, last_seq + 1);
      assert.equal((await cliRun(["audit", "verify", "--file", "-"], { ...NOWHERE, stdin: stdout })).code, 0);
    });

    it("that was interrupted says how to go on", async () => {
      await using relay = await openCliRelay();
      await fill(relay);
      const ending = new AbortController();
      const begun = await relay.run(["audit", "export"], {
        signal: ending.signal,
        onStdout: () => ending.abort(),
      });
      assert.equal(begun.code, 130);
      const since = /go on with --since (\d+)/.exec(begun.stderr)?.[1] ?? "";
      const rest = await relay.ok(["audit", "export", "--since", since]);
      const whole = begun.stdout + rest;
      assert.equal((await cliRun(["audit", "verify", "--file", "-"], { ...NOWHERE, stdin: whole })).code, 0);
    });

    it("overwrites nothing unless told to", async () => {
      await using relay = await openCliRelay();
      const path = newFile();
      await writeFile(path, "precious");
      const { code, stderr } = await relay.run(["audit", "export", "--out", path]);
      assert.equal(code, 1);
      assert.match(stderr, /exists already; choose another name, or pass --force/);
      assert.equal(await readFile(path, "utf8"), "precious");
      await relay.ok(["audit", "export", "--out", path, "--force"]);
      assert.equal((await cliRun(["audit", "verify", "--file", path], NOWHERE)).code, 0);
    });

    it("says when a file cannot be used", async () => {
      for (const [flag, verb] of [
        ["export", "--out"],
        ["verify", "--file"],
      ] as const) {
        const { code, stderr } = await cliRun(["audit", flag, verb, join(folder, "gone", "x")], NOWHERE);
        assert.equal(code, 2);
        assert.match(stderr, /cannot be (written|read): ENOENT/);
      }
    });
  });

  describe("verify --file", () => {
    it("finds an export that was cut or edited", async () => {
      await using relay = await openCliRelay();
      await write(relay, 3);
      const path = newFile();
      await relay.ok(["audit", "export", "--out", path]);
      const lines = await linesOf(path);
      const { last_seq, head } = await relay.client.verifyJournal();
      const cases: readonly (readonly [lines: readonly string[], problem: RegExp])[] = [
        [lines.slice(0, -1), /the last line is not an anchor record/],
        [lines.toSpliced(-2, 1), /some are missing/],
        [
          lines.with(1, lines[1]?.replace(/"actor":"[^"]+"/, '"actor":"eve"') ?? ""),
          /line 2: event 2 .*changed/,
        ],
        [lines.toSpliced(1, 1), /line 2: event 2 is missing/],
      ];
      for (const [spoilt, problem] of cases) {
        await writeFile(path, `${spoilt.join("\n")}\n`);
        const { code, stderr } = await cliRun(["audit", "verify", "--file", path], NOWHERE);
        assert.equal(code, 1);
        assert.match(stderr, /^error: /);
        assert.match(stderr, problem);
      }
      const short = newFile();
      await writeFile(short, `${lines.slice(0, 2).join("\n")}\n`);
      const noted = ["--anchor", `${last_seq}:${head}`];
      const { stderr } = await cliRun(["audit", "verify", "--file", short, ...noted], NOWHERE);
      assert.match(stderr, new RegExp(`has seen event ${last_seq}, but the last one here is 2`));
    });
  });
});
