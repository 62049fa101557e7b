import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import type { VerifyResponse } from "@a2a-relay/protocol";
import { ask } from "../support/ask.ts";
import { assertVerifies, BOB, lease, createMessage } from "./messages.ts";
import { type RelayFiles, type StoppedRelay, stoppedRelay } from "./stopped-relay.ts";

const SECRET = "transfer 100 to ada";

describe("a journal that was edited while the relay was stopped", { timeout: 60_000 }, () => {
  let stopped: StoppedRelay;

  before(async () => {
    stopped = await stoppedRelay("SIGTERM", async (url) => {
      await createMessage(url, SECRET);
      const { taskId } = await createMessage(url, "please", { type: "request" });
      const [first, second] = await lease(url, { max: 2 });
      await ask(url, "POST", `/mailbox/${BOB}/ack`, {
        leases: [{ message_id: first?.message_id, lease_id: first?.lease.id }],
      });
      const done = { text: "done", lease_id: second?.lease.id };
      assert.equal((await ask(url, "POST", `/tasks/${taskId}/complete`, done)).status, 200);
      await createMessage(url, "the last one");
    });
  });
  after(() => stopped[Symbol.asyncDispose]());

  it("verifies while it is untouched", async () => {
    await using relay = await stopped.startAfter(() => undefined);
    const { events, messages } = await assertVerifies(relay.url);
    assert.ok(events > 8);
    assert.equal(messages, 4);
  });

  it("shows an edited event", () =>
    assertFound(/^event 3 .*changed/, "update event set data_json = '{}' where seq = 3"));

  it("shows who was made to have done it", () =>
    assertFound(/^event 4 .*changed/, "update event set actor = 'eve@faults' where seq = 4"));

  it("shows when it was made to have happened", () =>
    assertFound(/^event 4 .*changed/, "update event set at_ms = at_ms - 1 where seq = 4"));

  it("shows an event taken from the middle", () =>
    assertFound(/^event 5 is missing/, "delete from event where seq = 5"));

  it("shows an event taken from the end", () =>
    assertFound(/missing/, "delete from event where seq = (select max(seq) from event)"));

  it("shows two events that were swapped", () =>
    assertFound(
      /^event 4 .*changed/,
      "update event set place = -4 where place = 4",
      "update event set place = 4 where place = 5",
      "update event set place = 5 where place = -4",
    ));

  it("shows a message whose text was changed", () =>
    assertFound(/^message \S+ is not the one/, "update message set json = replace(json, '100', '999')"));

  it("shows a message that was made to disappear", () =>
    assertFound(
      /^a message that was accepted is gone/,
      "delete from delivery where message_id = (select id from message order by ref limit 1)",
      "delete from message where ref = (select min(ref) from message)",
    ));

  it("shows an event that was put behind the last one", () =>
    assertFound(
      /was put behind the head/,
      `insert into event (place, type, at_ms, actor, data_json, previous_hash, hash)
         select place + 1, type, at_ms, actor, data_json, previous_hash, hash
         from event order by place desc limit 1`,
    ));

  it("shows a message whose bytes changed on the disk", async () => {
    const body = await verifyAfter(async ({ database }) => {
      const bytes = await readFile(database);
      const position = bytes.indexOf(SECRET);
      assert.ok(position > 0);
      bytes.write("transfer 999", position);
      await writeFile(database, bytes);
    });
    assert.equal(body.ok, false);
    assert.match(body.problem ?? "", /^message \S+ is not the one/);
  });

  async function assertFound(problem: RegExp, ...statements: readonly string[]): Promise<void> {
    const body = await verifyAfter(({ database }) => {
      const file = new DatabaseSync(database);
      for (const statement of statements) assert.ok(Number(file.prepare(statement).run().changes) > 0);
      file.close();
    });
    assert.equal(body.ok, false);
    assert.match(body.problem ?? "", problem);
  }

  async function verifyAfter(damage: (files: RelayFiles) => void | Promise<void>): Promise<VerifyResponse> {
    await using relay = await stopped.startAfter(damage);
    const { status, body } = await ask<VerifyResponse>(relay.url, "GET", "/journal/verify");
    assert.equal(status, 200);
    return body;
  }
});
