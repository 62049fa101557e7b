import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { EventsResponse, MailboxResponse, TasksResponse } from "@a2a-relay/protocol";
import { ask, errorCode } from "../support/ask.ts";
import { type ChildRelay, runChildRelay, startChildRelay } from "../support/child-relay.ts";
import { mountSmallDisk, noSmallDisks, type SmallDisk } from "../support/small-disk.ts";
import {
  ADA,
  assertKept,
  assertVerifies,
  BOB,
  lease,
  type CreatedMessage,
  createMessage,
  createdFrom,
  readAll,
  registerBoth,
  send,
} from "./messages.ts";

const DISK_MIB = 8;
const SENDS_MAX = 3_000;
const AT_ONCE = 8;
/** Long enough that a commit takes many pages and the disk ends in the middle of one. */
const BODY = "知微你好 ".repeat(1_000);

const skip = noSmallDisks();
if (skip !== false) process.stdout.write(`full disk: not tested, ${skip}\n`);

describe("a relay whose disk is full", { timeout: 120_000, skip }, () => {
  it("answers 507, does nothing by halves, and goes on by itself once there is room", async () => {
    await using disk = await mountSmallDisk(DISK_MIB);
    await using relay = await startChildRelay({ dataDirectory: join(disk.path, "data") });
    await registerBoth(relay.url);
    const { kept, refused } = await sendUntilFull(relay, disk);
    await assertNothingByHalves(relay.url, kept, refused);

    disk.makeRoom();
    const { body, key } = refused[0] ?? { body: "", key: "" };
    const retried = await send(relay.url, body, { idempotency_key: key });
    assert.equal(retried.status, 201, JSON.stringify(retried.body));
    kept.push(createdFrom(retried, body));
    kept.push(await createMessage(relay.url, "there is room again"));
    await assertKept(relay.url, kept);
    await assertVerifies(relay.url);

    assert.deepEqual(await relay.kill("SIGTERM"), { code: 0, signal: null });
    await using next = await startChildRelay({ dataDirectory: relay.dataDirectory });
    await assertKept(next.url, kept);
    await assertVerifies(next.url);
  });

  it("lets everybody read, and refuses every other change in the same words", async () => {
    await using disk = await mountSmallDisk(DISK_MIB);
    await using relay = await startChildRelay({ dataDirectory: join(disk.path, "data") });
    const { url } = relay;
    await registerBoth(url);
    const work = await createMessage(url, "please", { type: "request" });
    const [held] = await lease(url, { max: 1 });
    const { kept } = await sendUntilFull(relay, disk);

    const read = await ask<MailboxResponse>(url, "GET", `/mailbox/${BOB}?limit=500`);
    assert.equal(read.status, 200, JSON.stringify(read.body));
    assert.equal(read.body.messages.length, Math.min(500, kept.length));
    const finish = { text: BODY, lease_id: held?.lease.id };
    const messages = [1, 2].map((count) => ({ from: ADA, to: BOB, body: `${BODY} ${count}` }));
    const refused = [
      await ask(url, "GET", "/ready"),
      await ask(url, "POST", `/mailbox/${BOB}/lease`, { max: 100 }),
      await ask(url, "POST", `/tasks/${work.taskId}/complete`, finish),
      await ask(url, "POST", "/messages/batch", { atomic: true, messages }),
    ];
    for (const reply of refused) {
      assert.equal(errorCode(reply), "storage_full", JSON.stringify(reply.body).slice(0, 300));
      assert.equal(reply.status, 507);
    }
    await assertVerifies(url);

    disk.makeRoom();
    assert.equal((await ask(url, "POST", `/tasks/${work.taskId}/complete`, finish)).status, 200);
    await assertKept(url, kept);
    await assertVerifies(url);
  });

  it("loses nothing when it is killed, and serves reads before there is room", async () => {
    await using disk = await mountSmallDisk(DISK_MIB);
    const dataDirectory = join(disk.path, "data");
    await using relay = await startChildRelay({ dataDirectory });
    await registerBoth(relay.url);
    const { kept, refused } = await sendUntilFull(relay, disk);
    await relay.kill("SIGKILL");
    await using next = await startChildRelay({ dataDirectory });
    await assertNothingByHalves(next.url, kept, refused);
    disk.makeRoom();
    kept.push(await createMessage(next.url, "there is room again"));
    await assertKept(next.url, kept);
  });

  it("says so when it cannot even begin", async () => {
    await using disk = await mountSmallDisk(DISK_MIB);
    disk.fill();
    const run = await runChildRelay({ dataDirectory: join(disk.path, "data") });
    assert.equal(run.code, 1, run.stderr);
    assert.match(run.stderr, /^error: [^\n]*(the disk is full|no space left)[^\n]*\n$/i);
  });
});

interface Refused {
  readonly body: string;
  readonly key: string;
}

/** Fills the disk while several send at once, until every send is refused. */
async function sendUntilFull(
  relay: ChildRelay,
  disk: SmallDisk,
): Promise<{ readonly kept: CreatedMessage[]; readonly refused: readonly Refused[] }> {
  const kept: CreatedMessage[] = [];
  const refused: Refused[] = [];
  let count = 0;
  for (let round = 0; round < 20; round += 1)
    kept.push(await createMessage(relay.url, `before ${round}: ${BODY}`));
  disk.fill();
  const sender = async (): Promise<void> => {
    for (let failures = 0; failures < 5 && count < SENDS_MAX;) {
      count += 1;
      const body = `${count}: ${BODY}`;
      const key = `key ${count}`;
      const reply = await send(relay.url, body, { idempotency_key: key });
      if (reply.status === 201) {
        kept.push(createdFrom(reply, body));
        continue;
      }
      failures += 1;
      assert.equal(reply.status, 507, JSON.stringify(reply.body));
      assert.equal(errorCode(reply), "storage_full");
      refused.push({ body, key });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
  assert.ok(refused.length > 0, `${count} sends did not fill the disk`);
  return { kept, refused };
}

/** What was accepted exists, what was refused does not, and everything can be read. */
async function assertNothingByHalves(
  url: string,
  kept: readonly CreatedMessage[],
  refused: readonly Refused[],
): Promise<void> {
  await assertKept(url, kept);
  const bodies = new Set((await readAll(url)).map((item) => item.message.body));
  for (const { body } of refused) assert.equal(bodies.has(body), false);
  assert.equal(bodies.size, kept.length);
  await assertVerifies(url);
  assert.equal((await ask(url, "GET", "/health")).status, 200);
  assert.equal((await ask<TasksResponse>(url, "GET", "/tasks")).status, 200);
  const { status, body } = await ask<EventsResponse>(url, "GET", "/events?type=message.accepted&limit=500");
  assert.equal(status, 200);
  assert.equal(body.events.length, Math.min(500, kept.length));
}
