import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import type { MailboxItem } from "@a2a-relay/protocol";
import { ask } from "../support/ask.ts";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { EventReader } from "../support/event-reader.ts";

/** Each holds some 4 MB of the operating system's memory. `npm run test:crash` runs a thousand. */
const READERS = Number(process.env["A2A_TEST_SLOW_READERS"] ?? 100);
const KIB = 1024;
const MIB = 1024 * KIB;
/** What one reader may cost the relay that is sent far more than it takes. */
const READER_BYTES_MAX = 512 * KIB;
/** A process grows by as much without any reader, for a while. */
const NOISE_BYTES = 150 * MIB;
/** How many times longer a message may take on its way while the relay also fills what the slow readers leave. */
const SLOWDOWN_MAX = 30;
const MESSAGES = 6_000;
const STALL_MS = 3_000;

async function post(relay: ChildRelay, path: string, body: object): Promise<void> {
  const { status } = await ask(relay.url, "POST", path, body);
  assert.ok(status < 300, `${path}: ${status}`);
}

async function metric(relay: ChildRelay, name: string): Promise<number> {
  const text = await (await fetch(`${relay.url}/metrics`)).text();
  return Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.split(" ")[1],
  );
}

/** Asks for the stream and never reads a byte of it. */
async function neverReads(relay: ChildRelay, agent: string): Promise<Socket> {
  const { hostname, port } = new URL(relay.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.pause();
  socket.write(`GET /mailbox/${agent}/stream?peek=true HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  return socket;
}

/** How long messages take to their reader, one after the other. */
async function live(
  relay: ChildRelay,
  inbox: EventReader<MailboxItem>,
  count: number,
): Promise<readonly number[]> {
  const times: number[] = [];
  for (let sent = 0; sent < count; sent += 1) {
    const startedAt = performance.now();
    await post(relay, "/messages", { from: "慢", to: "快", body: `${sent}` });
    assert.equal((await inbox.event()).data.message.body, `${sent}`);
    times.push(performance.now() - startedAt);
  }
  return times;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Infinity;
}

describe(`${READERS} readers that take nothing of what they are sent`, { timeout: 300_000 }, () => {
  it("cost the relay a bounded amount each, delay no other reader, and are cut off", async (t) => {
    await using relay = await startChildRelay({ args: ["--stream-stall-ms", String(STALL_MS)] });
    for (const agent_id of ["快", "慢"]) await post(relay, "/agents/register", { agent_id });
    const message = { from: "快", to: "慢", body: "x".repeat(KIB) };
    for (let sent = 0; sent < MESSAGES; sent += 500) {
      await post(relay, "/messages/batch", { messages: Array.from({ length: 500 }, () => message) });
    }
    await using inbox = await EventReader.open<MailboxItem>(
      `${relay.url}/mailbox/${encodeURIComponent("快")}/stream`,
    );
    await inbox.next();
    // The first ones warm it up.
    await live(relay, inbox, 20);
    const alone = median(await live(relay, inbox, 30));
    const before = await metric(relay, "a2a_relay_resident_memory_bytes");
    const slow: Socket[] = [];
    try {
      for (let count = 0; count < READERS; count += 1) {
        slow.push(await neverReads(relay, encodeURIComponent("慢")));
      }
      const crowded = median(await live(relay, inbox, 30));
      const grown = (await metric(relay, "a2a_relay_resident_memory_bytes")) - before;
      t.diagnostic(
        `${Math.round(grown / MIB)} MiB more, messages in ${crowded.toFixed(1)} ms (median), before ${alone.toFixed(1)}`,
      );
      assert.ok(
        grown < NOISE_BYTES + READERS * READER_BYTES_MAX,
        `the relay grew by ${Math.round(grown / MIB)} MiB`,
      );
      assert.ok(
        crowded < SLOWDOWN_MAX * alone,
        `half of the messages took ${crowded} ms and more, where ${alone} ms were enough before`,
      );
      const cutOff = 'a2a_relay_slow_readers_total{kind="mailbox"}';
      while ((await metric(relay, cutOff)) < READERS) await live(relay, inbox, 1);
      assert.equal(await metric(relay, 'a2a_relay_open_streams{kind="mailbox"}'), 1);
      await live(relay, inbox, 5);
    } finally {
      for (const socket of slow) socket.destroy();
    }
  });
});
