import assert from "node:assert/strict";
import { LIMITS, RelayClient } from "@a2a-relay/client";
import { Then, When } from "@cucumber/cucumber";
import type { RelayWorld } from "./relay-world.ts";

/** Answered before the kill; the rest is somewhere on the way at that moment. */
const ANSWERED_MIN = 50;

When<RelayWorld>(
  "the relay is killed with kill -9 while {word} writes {int} messages to {word}",
  async function (from: string, count: number, to: string) {
    // Repeating would hide what got lost.
    const client = new RelayClient({ url: this.client.url, retries: 0 });
    const half = Promise.withResolvers<void>();
    const sends = Array.from({ length: count }, async (_, index) => {
      const { receipt } = await client.send({ from, to, body: `message ${index}` });
      // In front: the message that the scenario is about stays the last one.
      this.receipts.unshift(receipt);
      if (this.receipts.length > ANSWERED_MIN) half.resolve();
    });
    await Promise.race([half.promise, Promise.all(sends)]);
    await this.kill();
    await Promise.allSettled(sends);
  },
);

When<RelayWorld>("the relay is started again", async function () {
  await this.start();
});

Then<RelayWorld>(
  "{word} has every message for which {word} had a receipt",
  async function (to: string, _from: string) {
    const present = new Set([...this.held.values()].map((message) => message.message_id));
    for (let since = "", full = true; full;) {
      const page = await this.client.readMailbox(to, { since, limit: LIMITS.readLimitMax, peek: true });
      for (const { message_id: id } of page.messages) present.add(id);
      full = page.messages.length === LIMITS.readLimitMax;
      since = page.cursor;
    }
    const lost = this.receipts.filter((receipt) => !present.has(receipt.message_id));
    assert.ok(this.receipts.length > ANSWERED_MIN, "the relay was killed too early to tell");
    assert.deepEqual(lost, []);
  },
);

Then<RelayWorld>("the journal is complete and unchanged", async function () {
  const { ok, problem } = await this.client.verifyJournal();
  assert.ok(ok, problem);
});
