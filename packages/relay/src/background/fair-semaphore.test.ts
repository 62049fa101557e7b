import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { FairSemaphore, type PermitRequest } from "./fair-semaphore.ts";

const STUDIO = { tenant: "工作室", isProven: true };
const ACME = { tenant: "acme", isProven: true };
const LAB = { tenant: "lab", isProven: true };

/** Acts that run until the test ends them. */
class Acts {
  readonly started: PermitRequest[] = [];
  readonly #semaphore: FairSemaphore;
  readonly #running: { readonly use: PermitRequest; readonly end: () => void }[] = [];

  constructor(permits: number) {
    this.#semaphore = new FairSemaphore(permits);
  }

  async add(use: PermitRequest, count: number): Promise<void> {
    for (let number = 0; number < count; number += 1) {
      void this.#semaphore.run(use, async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.started.push(use);
        this.#running.push({ use, end: resolve });
        await promise;
      });
    }
    await nextTick();
  }

  /** Ends the one of these that has run longest. */
  async end(use: PermitRequest): Promise<void> {
    const at = this.#running.findIndex((each) => each.use === use);
    assert.ok(at >= 0, `nothing of ${use.tenant} runs`);
    this.#running.splice(at, 1)[0]?.end();
    await nextTick();
  }

  running(...uses: readonly PermitRequest[]): readonly number[] {
    return uses.map((use) => this.#running.filter((each) => each.use === use).length);
  }
}

describe("a fair semaphore", () => {
  it("gives one tenant half of the permits, and keeps the rest for others", async () => {
    const acts = new Acts(200);
    await acts.add(STUDIO, 1_000);
    assert.deepEqual(acts.running(STUDIO), [100]);
    await acts.add(ACME, 1_000);
    assert.deepEqual(acts.running(STUDIO, ACME), [100, 50]);
    await acts.add(LAB, 1);
    assert.deepEqual(acts.running(LAB), [1]);
  });

  it("gives busy tenants the same in the long run", async () => {
    const acts = new Acts(200);
    await acts.add(STUDIO, 1_000);
    await acts.add(ACME, 1_000);
    for (let round = 0; round < 100; round += 1) {
      await acts.end(STUDIO);
      await acts.end(ACME);
    }
    for (const count of acts.running(STUDIO, ACME)) assert.ok(count >= 65 && count <= 68, `${count}`);
  });

  it("leaves permits for a new tenant though many are busy", async () => {
    const acts = new Acts(200);
    const greedy = Array.from({ length: 20 }, (_, number) => ({
      tenant: `greedy-${number}`,
      isProven: true,
    }));
    for (const each of greedy) await acts.add(each, 200);
    for (let round = 0; round < 100; round += 1) {
      for (const each of greedy) if (acts.running(each)[0] !== 0) await acts.end(each);
    }
    for (const count of acts.running(...greedy)) assert.ok(count >= 9 && count <= 10, `${count}`);
    await acts.add(LAB, 1);
    assert.deepEqual(acts.running(LAB), [1]);
  });

  it("is round robin: every queue gets a permit before another gets its second", async () => {
    const acts = new Acts(2);
    await acts.add(STUDIO, 3);
    await acts.add(LAB, 1);
    await acts.add(ACME, 2);
    assert.deepEqual(acts.running(STUDIO, LAB, ACME), [1, 1, 0]);
    await acts.end(STUDIO);
    await acts.end(LAB);
    assert.deepEqual(acts.started.slice(2), [STUDIO, ACME]);
    await acts.end(STUDIO);
    await acts.end(ACME);
    assert.deepEqual(acts.started.slice(4), [STUDIO, ACME]);
  });

  it("keeps permits of a tenant for proven receivers, and serves unproven ones too", async () => {
    const hanging = { ...STUDIO, isProven: false };
    const acts = new Acts(200);
    await acts.add(hanging, 1_000);
    assert.deepEqual(acts.running(hanging), [67]);
    await acts.add(STUDIO, 1_000);
    assert.deepEqual(acts.running(hanging, STUDIO), [67, 33]);
    for (let round = 0; round < 67; round += 1) await acts.end(hanging);
    const [stillHanging = 0] = acts.running(hanging);
    assert.ok(stillHanging > 20 && stillHanging < 67, `${stillHanging}`);
  });

  it("gives the only permit to one after the other", async () => {
    const acts = new Acts(1);
    await acts.add(STUDIO, 2);
    await acts.add({ ...ACME, isProven: false }, 1);
    for (let round = 0; round < 2; round += 1) await acts.end(acts.started.at(-1) ?? STUDIO);
    assert.equal(acts.started.length, 3);
  });

  it("releases the permit of an act that failed", async () => {
    const semaphore = new FairSemaphore(1);
    const failing = semaphore.run(STUDIO, async () => Promise.reject(new Error("no")));
    const next = semaphore.run(STUDIO, async () => "next");
    await assert.rejects(failing, { message: "no" });
    assert.equal(await next, "next");
  });
});
