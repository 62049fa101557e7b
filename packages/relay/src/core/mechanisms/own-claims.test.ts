import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory } from "../../../testing/core-on-memory.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { decideAndCommit } from "./commit-retry.ts";
import { CLAIM_MS, ClaimLost, workUnit } from "./own-claims.ts";

const [ONE, TWO] = [workUnit("sweep", "一"), workUnit("sweep", "二")];

describe("the claims of a process", () => {
  it("are in the order of the units, with a gap where another process was first", async () => {
    await using core = await coreOnMemory();
    const other = core.beside();
    await other.claims.take([ONE]);
    const [none, two, unknown] = await core.claims.take([ONE, TWO, workUnit("endpoint", "二")]);
    assert.deepEqual([none, two?.key, unknown?.kind], [undefined, TWO.key, "endpoint"]);
    assert.deepEqual(await core.claims.take([]), []);
  });

  it("differ by tenant, however the names are put together", () => {
    assert.notEqual(workUnit("endpoint", "a", "b,c").key, workUnit("endpoint", "a,b", "c").key);
  });

  it("last while they are renewed, and not for longer", async () => {
    await using core = await coreOnMemory();
    const other = core.beside();
    await core.claims.take([ONE]);
    for (let round = 0; round < 5; round += 1) {
      core.clock.advance(CLAIM_MS - 1);
      await core.claims.renew();
    }
    assert.deepEqual(await other.claims.take([ONE]), [undefined]);
    core.clock.advance(CLAIM_MS);
    assert.notEqual((await other.claims.take([ONE]))[0], undefined);
  });

  it("are not renewed once they are released, or lost", async () => {
    await using core = await coreOnMemory();
    const other = core.beside();
    const [one] = await core.claims.take([ONE, TWO]);
    assert.ok(one);
    await core.claims.release(one);
    const [taken] = await other.claims.take([ONE]);
    assert.ok(taken);
    core.clock.advance(CLAIM_MS);
    await other.claims.take([TWO]);
    await core.claims.renew();
    await core.claims.release(one);
    assert.deepEqual(await core.claims.take([TWO]), [undefined]);
    assert.deepEqual(await core.store.claims.renew([taken], 0), [taken]);
  });
});

describe("deciding under a claim that another process has taken", () => {
  it("ends at once, and writes nothing", async () => {
    await using core = await coreOnMemory();
    const claim = await core.claim(ONE);
    core.clock.advance(CLAIM_MS);
    await core.beside().claims.take([ONE]);
    let decisions = 0;
    const late = decideAndCommit(core.store, async () => {
      decisions += 1;
      return { changes: { tenant: DEFAULT_TENANT, claims: [claim], events: [] }, answer: undefined };
    });
    await assert.rejects(late, ClaimLost);
    assert.equal(decisions, 1);
  });
});
