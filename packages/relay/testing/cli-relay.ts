import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayClient } from "@a2a-relay/client";
import type { LeaseResponse } from "@a2a-relay/protocol";
import { loadConfig } from "../src/config/load-config.ts";
import { startRelay } from "../src/server/start-relay.ts";
import { type CliRun, cliRun, type CliRunOptions } from "./cli-run.ts";

/** A new relay with two agents, and command lines that talk to it. */
export interface CliRelay extends AsyncDisposable {
  readonly url: string;
  readonly client: RelayClient;
  /** Runs a command line that may fail. */
  readonly run: (argv: readonly string[], options?: CliRunOptions) => Promise<CliRun>;
  /** Runs one that must succeed and returns its stdout. */
  readonly ok: (argv: readonly string[], options?: CliRunOptions) => Promise<string>;
  /** The same with `--json`, parsed. */
  readonly json: (argv: readonly string[], options?: CliRunOptions) => Promise<Record<string, unknown>>;
}

export const LULU = "lulu@kamac";
export const ZHIWEI = "zhiwei@known-blocks1";

/** A command that does not end is interrupted, so that its test fails. */
const RUN_MS_MAX = 30_000;

/** `settings`: flags of `serve`, such as `{"a2a-block-ms": "0"}`. */
export async function openCliRelay(settings: Readonly<Record<string, string>> = {}): Promise<CliRelay> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "cli-relay-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const flags = { port: "0", data: join(directory, "data"), "log-level": "silent", ...settings };
  const relay = stack.use(await startRelay(loadConfig({ flags, env: {}, dotenv: {} })));
  const client = new RelayClient({ url: relay.url });
  await client.register({ agent_id: LULU, aliases: ["lulu"] });
  await client.register({ agent_id: ZHIWEI, aliases: ["zhiwei"], display_name: "知微" });
  const run: CliRelay["run"] = (argv, options = {}) => {
    const env = { A2A_RELAY_URL: relay.url, ...options.env };
    return cliRun(argv, { signal: AbortSignal.timeout(RUN_MS_MAX), ...options, env });
  };
  const ok: CliRelay["ok"] = async (argv, options) => {
    const { code, stdout, stderr } = await run(argv, options);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const json: CliRelay["json"] = async (argv, options) =>
    JSON.parse(await ok([...argv, "--json"], options)) as Record<string, unknown>;
  const running = stack.move();
  return { url: relay.url, client, run, ok, json, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** A request from LULU that a worker of ZHIWEI holds under a lease; with a key, it is declared idempotent. */
export async function leasedRequest(
  relay: CliRelay,
  key?: string,
): Promise<LeaseResponse["messages"][number]> {
  await relay.client.send({
    from: LULU,
    to: ZHIWEI,
    type: "request",
    subject: "你好",
    body: "x",
    ...(key === undefined ? {} : { idempotency: { duplicate_safety: "idempotent", key } }),
  });
  const [item] = (await relay.client.lease(ZHIWEI, { worker: "w-1" })).messages;
  assert.ok(item !== undefined);
  return item;
}
