import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MailboxMessage } from "../../core/ports/deliveries.ts";
import { LeaseLimiter } from "./lease-limiter.ts";

const SOME = [{}] as unknown as readonly MailboxMessage[];

describe("the lease limiter", () => {
  it("lets one answer at a time hold leased messages", async () => {
    const limiter = new LeaseLimiter();
    const [first, second, third] = [limiter.slot(), limiter.slot(), limiter.slot()];
    const taken: string[] = [];
    const take = (name: string) => async (): Promise<readonly MailboxMessage[]> => {
      taken.push(name);
      return SOME;
    };
    await first.fill(take("一"));
    const queued = [second.fill(take("二")), third.fill(take("三"))];
    await nextTurn();
    assert.deepEqual(taken, ["一"]);
    first[Symbol.dispose]();
    await queued[0];
    await nextTurn();
    assert.deepEqual(taken, ["一", "二"]);
    first[Symbol.dispose]();
    await nextTurn();
    assert.deepEqual(taken, ["一", "二"]);
    second[Symbol.dispose]();
    await queued[1];
    assert.deepEqual(taken, ["一", "二", "三"]);
  });

  it("is released by a request that got nothing or failed", async () => {
    const limiter = new LeaseLimiter();
    const empty = limiter.slot();
    assert.deepEqual(await empty.fill(async () => []), []);
    await assert.rejects(
      limiter.slot().fill(() => Promise.reject(new Error("no"))),
      /no/,
    );
    assert.equal(await limiter.slot().fill(async () => SOME), SOME);
    // A second attempt waits, because the limiter is taken now.
    let hasTaken = false;
    void empty.fill(async () => {
      hasTaken = true;
      return [];
    });
    await nextTurn();
    assert.equal(hasTaken, false);
  });
});
