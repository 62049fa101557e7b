import assert from "node:assert/strict";
import { appendFile, cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { VerifyResponse } from "@a2a-relay/protocol";
import { ask } from "../support/ask.ts";
import { startChildRelay } from "../support/child-relay.ts";
import { cutTail, pretendRetention, rewrite } from "./forged-chain.ts";
import { ADA, assertVerifies, BOB, createMessage, registerBoth } from "./messages.ts";
import { type RelayFiles, startRelayHere, type StoppedRelay, stoppedRelay } from "./stopped-relay.ts";

const ACME = "acme";

async function verify(url: string, tenant?: string): Promise<VerifyResponse> {
  const path = tenant === undefined ? "/journal/verify" : `/t/${tenant}/journal/verify`;
  const { status, body } = await ask<VerifyResponse>(url, "GET", path);
  assert.equal(status, 200);
  return body;
}

function anchorFile({ database }: RelayFiles): string {
  return join(dirname(database), "anchors", "anchors.jsonl");
}

describe("a journal whose chain was forged while the relay was stopped", { timeout: 60_000 }, () => {
  let stopped: StoppedRelay;
  let lastSeq = 0;

  before(async () => {
    stopped = await stoppedRelay("SIGTERM", async (url) => {
      await ask(url, "POST", "/keys", { tenant: ACME });
      for (const agentId of [ADA, BOB]) {
        await ask(url, "POST", `/t/${ACME}/agents/register`, { agent_id: agentId });
      }
      for (let index = 0; index < 5; index += 1) {
        await createMessage(url, `第 ${index} 封信`);
        await ask(url, "POST", `/t/${ACME}/messages`, { from: ADA, to: BOB, body: "别家的信" });
      }
      lastSeq = (await verify(url)).last_seq;
    });
  });
  after(() => stopped[Symbol.asyncDispose]());

  it("has an anchor for each tenant from the moment it stopped", async () => {
    await using relay = await stopped.startAfter(async (files) => {
      const lines = (await readFile(anchorFile(files), "utf8")).trimEnd().split("\n");
      const tenants = lines.map((line) => (JSON.parse(line) as { readonly tenant: string }).tenant);
      assert.deepEqual([...new Set(tenants)].toSorted(), [ACME, "default"]);
      if (process.platform !== "win32") assert.equal((await stat(anchorFile(files))).mode & 0o077, 0);
    });
    const { anchor, last_seq } = await assertVerifies(relay.url);
    assert.deepEqual([anchor?.seq, last_seq], [lastSeq, lastSeq]);
    assert.equal((await verify(relay.url, ACME)).ok, true);
  });

  it("shows that its last events are missing, at once, after more were written, and after another start", async () => {
    await using relay = await stopped.startChildAfter(({ database }) => cutTail(database, 2));
    await relay.said(/2 events are missing/);
    const { ok, problem, anchor } = await verify(relay.url);
    assert.equal(ok, false);
    const words = `has seen event ${lastSeq}, but the chain ends with event ${lastSeq - 2}: 2 events are missing`;
    assert.match(problem ?? "", new RegExp(`^the anchor of 20\\S+Z ${words}$`));
    assert.equal(anchor?.seq, lastSeq);
    for (let index = 0; index < 4; index += 1) await createMessage(relay.url, "as if nothing had happened");
    await relay.kill("SIGTERM");
    await using next = await startRelayHere(relay.dataDirectory);
    const later = await verify(next.url);
    assert.equal(later.ok, false);
    assert.match(later.problem ?? "", new RegExp(`has seen event ${lastSeq} with another hash`));
    assert.equal(later.anchor?.seq, lastSeq, "no new anchor covers up for it");
  });

  it("shows that an event was rewritten with all hashes after it", async () => {
    await using relay = await stopped.startAfter(({ database }) => rewrite(database, 3, "eve@faults"));
    const { ok, problem } = await verify(relay.url);
    assert.equal(ok, false);
    assert.match(problem ?? "", /with another hash: events .*were rewritten/);
  });

  it("shows nothing of that to who has no anchor: the chain itself fits", async () => {
    await using relay = await stopped.startAfter(async (files) => {
      rewrite(files.database, 3, "eve@faults");
      await rm(anchorFile(files));
    });
    await assertVerifies(relay.url);
  });

  it("shows that retention did not remove the missing events", async () => {
    await using relay = await stopped.startAfter(({ database }) => pretendRetention(database));
    const { ok, problem } = await verify(relay.url);
    assert.equal(ok, false);
    assert.match(problem ?? "", /all events up to 1000 are gone, and retention goes no further/);
  });

  it("shows it to the tenant it happened to, and to no other", async () => {
    await using relay = await stopped.startChildAfter(({ database }) => cutTail(database, 3, ACME));
    await relay.said(/tenant acme: .*3 events are missing/);
    const theirs = await verify(relay.url, ACME);
    assert.equal(theirs.ok, false);
    assert.match(theirs.problem ?? "", /3 events are missing/);
    await assertVerifies(relay.url);
    await createMessage(relay.url, "别人的事");
    await relay.kill("SIGTERM");
    await using next = await startRelayHere(relay.dataDirectory);
    assert.equal((await assertVerifies(next.url)).anchor?.seq, lastSeq + 1);
    assert.equal((await verify(next.url, ACME)).ok, false);
  });

  it("shows anchors that were damaged, and keeps them as they are", async () => {
    let damaged = "";
    await using relay = await stopped.startAfter(async (files) => {
      const path = anchorFile(files);
      damaged = `nonsense\n${await readFile(path, "utf8")}`;
      await writeFile(path, damaged);
    });
    const { ok, problem } = await verify(relay.url);
    assert.equal(ok, false);
    assert.match(problem ?? "", /line 1 of anchors.jsonl is not an anchor/);
    await createMessage(relay.url, "it works all the same");
    await relay.stop();
    assert.equal(await readFile(join(relay.dataDirectory, "anchors", "anchors.jsonl"), "utf8"), damaged);
  });

  it("shows anchors that cannot be read", async () => {
    await using relay = await stopped.startAfter(async (files) => {
      await rm(anchorFile(files));
      await mkdir(anchorFile(files));
    });
    const { ok, problem } = await verify(relay.url);
    assert.equal(ok, false);
    assert.match(problem ?? "", /the anchors outside the log cannot be read \(EISDIR\)/);
  });

  it("resumes behind an anchor that a crash has torn", async () => {
    await using relay = await stopped.startAfter((files) =>
      appendFile(anchorFile(files), '{"tenant":"default","seq":99'),
    );
    await assertVerifies(relay.url);
    await createMessage(relay.url, "one more");
    await relay.stop();
    await using next = await startRelayHere(relay.dataDirectory);
    assert.equal((await assertVerifies(next.url)).anchor?.seq, lastSeq + 1);
  });
});

describe("anchors on another disk", { timeout: 60_000 }, () => {
  it("remember a journal that was replaced by an older copy of itself", async () => {
    const root = await mkdtemp(join(tmpdir(), "a2a-relay-anchors-"));
    const [data, copy, anchors] = ["data", "copy", "anchors"].map((name) => join(root, name));
    const options = { dataDirectory: data ?? "", args: ["--anchor-dir", anchors ?? ""] };
    try {
      {
        await using relay = await startChildRelay(options);
        await registerBoth(relay.url);
        await createMessage(relay.url, "before the copy");
        await relay.kill("SIGTERM");
      }
      await cp(data ?? "", copy ?? "", { recursive: true });
      {
        await using relay = await startChildRelay(options);
        await createMessage(relay.url, "after the copy");
        await relay.kill("SIGTERM");
      }
      await rm(data ?? "", { recursive: true });
      await cp(copy ?? "", data ?? "", { recursive: true });
      await using relay = await startChildRelay(options);
      const { ok, problem } = await verify(relay.url);
      assert.equal(ok, false);
      assert.match(problem ?? "", /1 event is missing/);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });
});

describe("a relay that is killed between its commits and its anchors", { timeout: 120_000 }, () => {
  it("verifies each time, with an anchor that is never ahead of the journal", async () => {
    const root = await mkdtemp(join(tmpdir(), "a2a-relay-killed-"));
    const options = { dataDirectory: join(root, "data"), args: ["--anchor-interval-ms", "10"] };
    let anchoredSeq = 0;
    try {
      for (let round = 0; round < 4; round += 1) {
        await using relay = await startChildRelay(options);
        if (round === 0) await registerBoth(relay.url);
        const { anchor, last_seq } = await assertVerifies(relay.url);
        if (round > 0) assert.ok((anchor?.seq ?? 0) >= anchoredSeq && (anchor?.seq ?? 0) <= last_seq);
        anchoredSeq = anchor?.seq ?? 0;
        await sendUntilKilled(relay, 100 + round * 37);
      }
      assert.ok(anchoredSeq > 0);
      await using relay = await startChildRelay(options);
      await assertVerifies(relay.url);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });
});

async function sendUntilKilled(
  relay: Awaited<ReturnType<typeof startChildRelay>>,
  messages: number,
): Promise<void> {
  let sent = 0;
  const clients = Array.from({ length: 8 }, async () => {
    for (;;) {
      const reply = await ask(relay.url, "POST", "/messages", { from: ADA, to: BOB, body: "x" }).catch(
        () => undefined,
      );
      if (reply === undefined) return;
      sent += 1;
      if (sent === messages) await relay.kill("SIGKILL");
    }
  });
  await Promise.all(clients);
}
