import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { MailboxItem, SendResponse } from "@a2a-relay/protocol";
import { openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { ask } from "../support/ask.ts";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { EventReader } from "../support/event-reader.ts";

const MESSAGES = 12;
const STREAM = `/mailbox/${ZHIWEI}/stream`;
const TIMEOUT = { timeout: 120_000 };

function inboxAt(url: string, since: string | undefined): Promise<EventReader<MailboxItem>> {
  return EventReader.open(url + STREAM, since === undefined ? {} : { "last-event-id": since });
}

/** What a reader got that was cut off again and again, and its last cursor. */
class Log {
  readonly messageIds: string[] = [];
  cursor: string | undefined;

  add({ id, data }: { readonly id: string; readonly data: MailboxItem }): void {
    this.messageIds.push(data.message_id);
    this.cursor = id;
  }
}

describe("a stream that is cut off", TIMEOUT, () => {
  it("at any message goes on there: the two parts are the whole, without a repeat", async () => {
    await using relay = await openHttpRelay();
    const sent: string[] = [];
    for (let count = 0; count < MESSAGES; count += 1)
      sent.push((await relay.send({ body: `${count}` })).message_id);
    for (let cut = 0; cut <= MESSAGES; cut += 1) {
      const log = new Log();
      for (const count of [cut, MESSAGES - cut]) {
        await using inbox = await inboxAt(relay.url, log.cursor);
        for (const event of await inbox.take(count)) log.add(event);
      }
      assert.deepEqual(log.messageIds, sent, `cut at ${cut}`);
    }
  });

  it("at every message, while more of them come, brings each of them once and in order", async () => {
    await using relay = await openHttpRelay();
    const sending = (async () => {
      const sent: string[] = [];
      for (let count = 0; count < MESSAGES; count += 1)
        sent.push((await relay.send({ body: `${count}` })).message_id);
      return sent;
    })();
    const log = new Log();
    while (log.messageIds.length < MESSAGES) {
      await using inbox = await inboxAt(relay.url, log.cursor);
      log.add(await inbox.event());
    }
    assert.deepEqual(log.messageIds, await sending);
  });

  it("in the middle of a message brings the whole of it again", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ body: "短" });
    const { message_id } = await relay.send({ body: "长".repeat(200_000) });
    const begun = await fetch(relay.url + STREAM);
    assert.ok(begun.body);
    for await (const chunk of begun.body) {
      assert.ok(chunk.byteLength > 0);
      break;
    }
    await using inbox = await inboxAt(relay.url, "1");
    const { data } = await inbox.event();
    assert.deepEqual([data.message_id, data.message.body.length], [message_id, 200_000]);
  });

  it("by a relay that is stopped or killed goes on with the next relay over the same data", async () => {
    const directory = await mkdtemp(join(tmpdir(), "stream-resume-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const sent: string[] = [];
    const log = new Log();
    for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL", "SIGKILL"] as const) {
      await using relay = await startChildRelay({ dataDirectory: join(directory, "data") });
      if (sent.length === 0) {
        for (const agent_id of ["lulu@kamac", ZHIWEI])
          await ask(relay.url, "POST", "/agents/register", { agent_id });
      }
      for (let count = 0; count < 3; count += 1) sent.push(await sendTo(relay));
      await using inbox = await inboxAt(relay.url, log.cursor);
      // One message is left for the next relay, so that there is always something behind the cursor.
      for (const event of await inbox.take(sent.length - log.messageIds.length - 1)) log.add(event);
      const ended = inbox.rest();
      await relay.kill(signal);
      for (const event of await ended) log.add(event);
    }
    await using relay = await startChildRelay({ dataDirectory: join(directory, "data") });
    await using inbox = await inboxAt(relay.url, log.cursor);
    sent.push(await sendTo(relay));
    for (const event of await inbox.take(sent.length - log.messageIds.length)) log.add(event);
    assert.deepEqual(log.messageIds, sent);
  });

  it("by a relay that stops does not hold it up", async () => {
    await using relay = await startChildRelay();
    await ask(relay.url, "POST", "/agents/register", { agent_id: ZHIWEI });
    const readers = await Promise.all(Array.from({ length: 100 }, () => inboxAt(relay.url, undefined)));
    for (const inbox of readers) await inbox.next();
    const startedAt = performance.now();
    const { code } = await relay.kill("SIGTERM");
    assert.equal(code, 0);
    assert.ok(performance.now() - startedAt < 10_000);
    for (const inbox of readers) assert.equal(await inbox.next(), undefined);
  });
});

async function sendTo(relay: ChildRelay): Promise<string> {
  const message = { from: "lulu@kamac", to: ZHIWEI, body: "知微你好" };
  const { status, body } = await ask<SendResponse>(relay.url, "POST", "/messages", message);
  assert.equal(status, 201);
  return body.receipt.message_id;
}
