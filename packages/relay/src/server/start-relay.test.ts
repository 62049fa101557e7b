import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { refused } from "../../testing/refusal.ts";
import { loadConfig } from "../config/load-config.ts";
import type { RelayConfig } from "../config/relay-config.ts";
import { startRelay } from "./start-relay.ts";
import { VERSION } from "./version.ts";

/** A directory that is removed after the test. */
class Scratch implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "start-relay-"));

  config(flags: Readonly<Record<string, string>> = {}): RelayConfig {
    const all = { port: "0", data: join(this.path, "data"), "log-level": "silent", ...flags };
    return loadConfig({ flags: all, env: {}, dotenv: {} });
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

async function post(url: string, body: object): Promise<Response> {
  const headers = { "content-type": "application/json", connection: "close" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

describe("a relay", () => {
  it("tells where it listens, and its version", async () => {
    using scratch = new Scratch();
    await using relay = await startRelay(scratch.config());
    assert.match(relay.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const answer = await fetch(`${relay.url}/health`, { headers: { connection: "close" } });
    assert.deepEqual(await answer.json(), { status: "ok", version: VERSION });
    assert.match(VERSION, /^\d+\.\d+\.\d+/);
  });

  it("offers its task queue to the program that embeds it", async () => {
    using scratch = new Scratch();
    const relay = await startRelay(scratch.config());
    await using _ = relay;
    for (const agent_id of ["lulu@kamac", "zhiwei@known-blocks1"]) {
      await post(`${relay.url}/agents/register`, { agent_id });
    }
    const mailbox = relay.mailbox();
    const received = mailbox.recvTask();
    const task = { id: "t1", sender: "lulu@kamac", recipient: "zhiwei@known-blocks1", intent_text: "翻译" };
    assert.equal((await post(`${relay.url}/a2a/tasks`, task)).status, 200);
    assert.equal((await received).id, "t1");
    const never = assert.rejects(mailbox.recvTask(), { code: "unavailable" });
    await relay[Symbol.asyncDispose]();
    await never;
  });

  it("keeps its messages over a restart", async () => {
    using scratch = new Scratch();
    const config = scratch.config();
    {
      await using relay = await startRelay(config);
      for (const agent_id of ["lulu", "zhiwei"]) await post(`${relay.url}/agents/register`, { agent_id });
      const sent = await post(`${relay.url}/messages`, { from: "lulu", to: "zhiwei", body: "知微你好" });
      assert.equal(sent.status, 201);
    }
    await using relay = await startRelay(config);
    const read = await fetch(`${relay.url}/mailbox/zhiwei`, { headers: { connection: "close" } });
    const { messages } = (await read.json()) as { messages: { message: { body: string } }[] };
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      ["知微你好"],
    );
  });

  it("keeps its data private", async () => {
    using scratch = new Scratch();
    await using _ = await startRelay(scratch.config());
    if (process.platform === "win32") return;
    assert.equal(statSync(join(scratch.path, "data")).mode & 0o077, 0);
    assert.equal(statSync(join(scratch.path, "data", "relay.sqlite")).mode & 0o077, 0);
    assert.equal(statSync(join(scratch.path, "data", "anchors")).mode & 0o077, 0);
  });

  it("refuses to start twice on the same data", async () => {
    using scratch = new Scratch();
    const config = scratch.config();
    await using _ = await startRelay(config);
    await refused(startRelay(config), "unavailable", /relay/);
  });

  it("reports a port in use, and unlocks its data", async () => {
    using scratch = new Scratch();
    await using first = await startRelay(scratch.config());
    const { port } = new URL(first.url);
    const second = scratch.config({ data: join(scratch.path, "other"), port });
    await refused(startRelay(second), "unavailable", new RegExp(`port ${port} .* already in use.*--port`));
    await using _ = await startRelay({ ...second, port: 0 });
  });

  it("reports a directory that cannot be created", async () => {
    using scratch = new Scratch();
    const file = join(scratch.path, "file");
    writeFileSync(file, "x");
    await refused(startRelay(scratch.config({ data: join(file, "data") })), "unavailable", /--data/);
    const anchors = scratch.config({ "anchor-dir": join(file, "anchors") });
    await refused(startRelay(anchors), "unavailable", /cannot create the anchor directory .*--anchor-dir/);
    const archive = scratch.config({ "archive-dir": join(file, "archive") });
    await refused(startRelay(archive), "unavailable", /cannot create the archive directory .*--archive-dir/);
  });

  it("reports an address on which it cannot listen", async () => {
    using scratch = new Scratch();
    const config = { ...scratch.config(), host: "192.0.2.1" };
    await refused(startRelay(config), "unavailable", /cannot listen on 192\.0\.2\.1/);
  });

  it("can be stopped twice", async () => {
    using scratch = new Scratch();
    const relay = await startRelay(scratch.config());
    await relay[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
    await assert.rejects(fetch(`${relay.url}/health`));
  });
});
