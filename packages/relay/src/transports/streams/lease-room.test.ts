import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MailboxMessage } from "../../core/ports/deliveries.ts";
import { LeaseRoom } from "./lease-room.ts";

const SOME = [{}] as unknown as readonly MailboxMessage[];

describe("the room for leased messages", () => {
  it("is for those of one answer at a time, until that has left", async () => {
    const room = new LeaseRoom();
    const [first, second, third] = [room.place(), room.place(), room.place()];
    const taken: string[] = [];
    const take = (name: string) => async (): Promise<readonly MailboxMessage[]> => {
      taken.push(name);
      return SOME;
    };
    await first.fill(take("一"));
    const waiting = [second.fill(take("二")), third.fill(take("三"))];
    await nextTurn();
    assert.deepEqual(taken, ["一"]);
    first[Symbol.dispose]();
    await waiting[0];
    await nextTurn();
    assert.deepEqual(taken, ["一", "二"]);
    first[Symbol.dispose]();
    await nextTurn();
    assert.deepEqual(taken, ["一", "二"]);
    second[Symbol.dispose]();
    await waiting[1];
    assert.deepEqual(taken, ["一", "二", "三"]);
  });

  it("is not kept by whoever got nothing, or failed", async () => {
    const room = new LeaseRoom();
    const empty = room.place();
    assert.deepEqual(await empty.fill(async () => []), []);
    await assert.rejects(
      room.place().fill(() => Promise.reject(new Error("no"))),
      /no/,
    );
    assert.equal(await room.place().fill(async () => SOME), SOME);
    // It may try again; there is no room now.
    let hasTaken = false;
    void empty.fill(async () => {
      hasTaken = true;
      return [];
    });
    await nextTurn();
    assert.equal(hasTaken, false);
  });
});
