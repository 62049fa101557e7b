import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import { loadConfig } from "../../packages/relay/src/config/load-config.ts";
import { type RunningRelay, startRelay } from "../../packages/relay/src/server/start-relay.ts";
import { startPostgres, type TestServer } from "../../packages/relay/testing/postgres-server.ts";
import { startChildRelay } from "../support/child-relay.ts";

const LULU = "lulu@笔记本";
const ZHIWEI = "知微@studio";

interface Relay extends AsyncDisposable {
  readonly client: RelayClient;
}

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

/** A relay with a data directory of its own, as on another machine. */
async function open(): Promise<Relay> {
  const data = mkdtempSync(join(tmpdir(), "a2a-relay-beside-"));
  const flags = {
    port: "0",
    data,
    database: server.url,
    "log-level": "error",
    "egress-allow": "127.0.0.0/8",
  };
  const relay: RunningRelay = await startRelay(loadConfig({ flags }));
  return {
    client: new RelayClient({ url: relay.url }),
    [Symbol.asyncDispose]: async () => {
      await relay[Symbol.asyncDispose]();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

async function register(client: RelayClient): Promise<void> {
  for (const agent_id of [LULU, ZHIWEI]) await client.register({ agent_id });
}

describe("two relays on one PostgreSQL database", () => {
  it("wake a reader at one of them with a message sent to the other", async () => {
    await using one = await open();
    await using two = await open();
    await register(one.client);
    const waiting = two.client.readMailbox(ZHIWEI, { wait_ms: 20_000 });
    const { receipt } = await one.client.send({ from: LULU, to: ZHIWEI, body: "你好" });
    const { messages } = await waiting;
    assert.deepEqual(
      messages.map(({ message_id }) => message_id),
      [receipt.message_id],
    );
    await two.client.ack(ZHIWEI, { message_ids: [receipt.message_id] });
    assert.deepEqual((await one.client.readMailbox(ZHIWEI)).messages, []);
  });

  it("lease each message once, whichever is asked", async () => {
    await using one = await open();
    await using two = await open();
    await register(one.client);
    const clients = [one.client, two.client];
    const texts = Array.from({ length: 20 }, (_, index) => `第${index}个`);
    const sent = await Promise.all(
      clients.flatMap((client) => texts.map((body) => client.send({ from: LULU, to: ZHIWEI, body }))),
    );
    const leased = await Promise.all(
      clients.flatMap((client) => texts.slice(0, 10).map(() => client.lease(ZHIWEI, { max: 3 }))),
    );
    const messages = leased.flatMap((answer) => answer.messages);
    const ids = messages.map(({ message_id }) => message_id);
    assert.deepEqual(new Set(ids), new Set(sent.map(({ receipt }) => receipt.message_id)));
    assert.equal(ids.length, sent.length);
    const leases = messages.map(({ message_id, lease }) => ({ message_id, lease_id: lease.id }));
    await two.client.ack(ZHIWEI, { leases });
  });

  it("accept one of two sends with the same key", async () => {
    await using one = await open();
    await using two = await open();
    await register(one.client);
    const message = {
      from: LULU,
      to: ZHIWEI,
      body: "一次",
      idempotency: { duplicate_safety: "unsafe", key: "同一个" },
    } as const;
    const answers = await Promise.all([one.client.send(message), two.client.send(message)]);
    assert.equal(new Set(answers.map(({ receipt }) => receipt.message_id)).size, 1);
    const { messages } = await one.client.readMailbox(ZHIWEI);
    await one.client.ack(ZHIWEI, { message_ids: messages.map(({ message_id }) => message_id) });
  });

  it("push a message once though both search for work, and keep one unbroken journal", async () => {
    const received: string[] = [];
    const receiver = createServer((request, response) => {
      received.push(String(request.headers["webhook-id"]));
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const callback_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await using one = await open();
    await using two = await open();
    await one.client.register({ agent_id: "推送@studio", callback_url, push: "webhook" });
    await register(two.client);
    const clients = [one.client, two.client];
    const sent: string[] = [];
    for (let index = 0; index < 10; index += 1) {
      const answer = await clients[index % 2]?.send({ from: LULU, to: "推送@studio", body: `${index}` });
      sent.push(answer?.receipt.message_id ?? "");
    }
    const last = sent.at(-1) ?? "";
    for (let tries = 0; (await two.client.message(last)).push?.state !== "delivered"; tries += 1) {
      assert.ok(tries < 500, "the push never arrived");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(received.toSorted(), sent.toSorted());
    const { ok, problem } = await two.client.verifyJournal();
    assert.deepEqual([ok, problem], [true, undefined]);
    receiver.close();
  });

  it("lease until a time of the database, also where a machine's clock is wrong by ten minutes", async () => {
    await using right = await open();
    await register(right.client);
    const shift = "data:text/javascript,const now = Date.now; Date.now = () => now() + 600_000;";
    const env = { NODE_OPTIONS: `--import=${shift.replaceAll(" ", "%20")}` };
    await using wrong = await startChildRelay({ args: ["--database", server.url], env });
    const client = new RelayClient({ url: wrong.url });
    await right.client.send({ from: LULU, to: ZHIWEI, body: "几点了" });
    const { messages } = await client.lease(ZHIWEI, { lease_ms: 60_000 });
    const leftMs = Date.parse(messages[0]?.lease.expires_at ?? "") - Date.now();
    assert.ok(leftMs > 0 && leftMs <= 61_000, `the lease ends in ${leftMs} ms`);
    await client.ack(ZHIWEI, {
      leases: messages.map(({ message_id, lease }) => ({ message_id, lease_id: lease.id })),
    });
  });

  it("show what is stored after both have stopped", async () => {
    await using relay = await open();
    const { agents } = await relay.client.agents();
    assert.ok(agents.some(({ agent_id }) => agent_id === ZHIWEI));
  });
});
