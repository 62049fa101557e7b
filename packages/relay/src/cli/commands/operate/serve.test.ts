import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import { type CliRun, cliRun, type CliRunOptions } from "../../../../testing/cli-run.ts";

const KEY = "0123456789abcdef";
const QUIET = ["serve", "--port", "0", "--log-level", "silent"];

describe("serve", () => {
  let directory = "";
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "serve-"));
  });
  after(() => rm(directory, { recursive: true }));

  /** Serves until `check` has seen the first output. */
  async function serve(
    argv: readonly string[],
    check: (stdout: string) => Promise<void> = async () => {},
    options: CliRunOptions = {},
  ): Promise<CliRun> {
    const ending = new AbortController();
    let checked: Promise<void> | undefined;
    const running = cliRun([...argv, "--data", directory], {
      ...options,
      signal: ending.signal,
      onStdout: (text) => {
        checked ??= check(text).finally(() => ending.abort());
      },
    });
    const run = await running;
    await checked;
    return run;
  }

  it("says first what it is, where it listens, where data is and whom it trusts", async () => {
    const { code, stdout } = await serve(QUIET);
    assert.equal(code, 0);
    assert.match(stdout, /^a2a-relay \d+\.\d+\.\d+\n {2}listening +http:\/\/127\.0\.0\.1:\d+\n/);
    assert.ok(stdout.includes(directory));
    assert.match(stdout, /every user of this machine is trusted/);
    assert.match(stdout, /docs +http:\/\/127\.0\.0\.1:\d+\/docs\n/);
    assert.match(stdout, /Try next.*:\n {2}npx a2a-relay \S.* --relay http.*\n {2}npx a2a-relay \S.*\n$/);
  });

  it("answers with one JSON value, works, and stops with 0", async () => {
    const { code } = await serve([...QUIET, "--json"], async (stdout) => {
      const { url } = JSON.parse(stdout) as { readonly url: string };
      await new RelayClient({ url, retries: 0 }).ready();
    });
    assert.equal(code, 0);
  });

  it("asks for the key when there is one, and says so", async () => {
    const check = async (stdout: string): Promise<void> => {
      assert.match(stdout, /an API key is required/);
      assert.match(stdout, /Try next, in another terminal, with the same A2A_RELAY_API_KEY:\n/);
      assert.doesNotMatch(stdout, new RegExp(KEY));
      const [, url = ""] = /listening +(\S+)/.exec(stdout) ?? [];
      const env = { A2A_RELAY_URL: url };
      const refused = await cliRun(["agents"], { env });
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /give a key that works with A2A_RELAY_API_KEY or --api-key/);
      assert.equal((await cliRun(["agents"], { env: { ...env, A2A_RELAY_API_KEY: KEY } })).code, 0);
      assert.equal((await cliRun(["--api-key", KEY, "agents"], { env })).code, 0);
    };
    assert.equal((await serve(QUIET, check, { env: { A2A_RELAY_API_KEY: KEY } })).code, 0);
  });

  it("reads .env of the working directory", async () => {
    await writeFile(join(directory, ".env"), `RELAY_API_KEY=${KEY}\n`);
    const { stdout } = await serve(QUIET, undefined, { workingDirectory: directory });
    assert.match(stdout, /an API key is required/);
  });

  it("mentions variables that are misspelt", async () => {
    const { stderr } = await serve(QUIET, undefined, { env: { A2A_RELAY_PORT: "1" } });
    assert.match(stderr, /A2A_RELAY_PORT is set but is no setting; is it misspelt\?/);
  });

  const refusals: readonly (readonly [string, readonly string[], RegExp])[] = [
    [
      "a public address without a key",
      ["serve", "--host", "0.0.0.0"],
      /set A2A_RELAY_API_KEY or bind 127\.0\.0\.1/,
    ],
    ["a wrong setting", ["serve", "--port", "x"], /^error: --port "x": expected a whole number/],
    [
      "an address of another machine",
      ["serve", "--host", "192.0.2.1", "--api-key", KEY, "--port", "0"],
      /192\.0\.2\.1/,
    ],
  ];
  for (const [what, argv, expected] of refusals) {
    it(`does not start with ${what}: one sentence, exit code 1`, async () => {
      const { code, stdout, stderr } = await cliRun([...argv, "--data", directory, "--log-level", "silent"]);
      assert.equal(code, 1, stderr);
      assert.equal(stdout, "");
      assert.match(stderr, expected);
      assert.equal(stderr.trim().split("\n").length, 1, stderr);
    });
  }

  it("does not start on a port that is taken, nor on data that another relay holds", async () => {
    const check = async (stdout: string): Promise<void> => {
      const [, port = ""] = /listening +\S+:(\d+)/.exec(stdout) ?? [];
      const other = join(directory, "other");
      const taken = await cliRun(["serve", "--port", port, "--data", other, "--log-level", "silent"]);
      assert.equal(taken.code, 1);
      assert.match(taken.stderr, new RegExp(`^error: .*${port}.* in use.*\n$`));
      const held = await cliRun([...QUIET, "--data", directory]);
      assert.equal(held.code, 1);
      assert.match(held.stderr, /^error: .+\n$/);
      assert.ok(held.stderr.includes(directory));
    };
    await serve(QUIET, check);
  });

  it("does not start where its data directory is a file", async () => {
    const file = join(directory, "file");
    await writeFile(file, "");
    const { code, stderr } = await cliRun([...QUIET, "--data", file]);
    assert.equal(code, 1);
    assert.match(stderr, /^error: .+\n$/);
  });
});
