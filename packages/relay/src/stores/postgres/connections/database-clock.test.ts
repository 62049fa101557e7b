import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { NOON_MS } from "../../../../testing/fake-clock.ts";
import { startPostgres, type TestServer } from "../../../../testing/postgres-server.ts";
import { DatabaseClock } from "./database-clock.ts";
import { openPostgresStore, type PostgresStore } from "../postgres-relay-store.ts";

const MINUTE_MS = 60_000;

/** A clock of this machine that stands still, except while the database is asked. */
function scene() {
  let localMs = NOON_MS;
  const clock = new DatabaseClock(() => localMs);
  const adjust = ({ databaseMs, tookMs }: { readonly databaseMs: number; readonly tookMs: number }) =>
    clock.adjust(async () => {
      localMs += tookMs;
      return databaseMs;
    });
  return { clock, adjust, localMs: () => localMs };
}

describe("the clock of a database", () => {
  it("is the one of this machine until the database was asked", () => {
    assert.equal(scene().clock.nowMs(), NOON_MS);
  });

  for (const aheadMs of [-10 * MINUTE_MS, 10 * MINUTE_MS]) {
    it(`is right when the database is ahead by ${aheadMs} ms`, async () => {
      const { clock, adjust, localMs } = scene();
      await adjust({ databaseMs: NOON_MS + aheadMs + 10, tookMs: 20 });
      assert.equal(clock.nowMs(), localMs() + aheadMs);
    });
  }

  it("does not move for less than the answer took", async () => {
    const { clock, adjust, localMs } = scene();
    await adjust({ databaseMs: NOON_MS + 500, tookMs: 500 });
    assert.equal(clock.nowMs(), localMs());
  });

  it("follows a clock that is set", async () => {
    const { clock, adjust, localMs } = scene();
    await adjust({ databaseMs: NOON_MS + MINUTE_MS, tookMs: 0 });
    await adjust({ databaseMs: NOON_MS, tookMs: 0 });
    assert.equal(clock.nowMs(), localMs());
  });
});

describe("relays whose machines have different clocks", () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  it("agree on the time, so that one does not end the claims of the other early", async () => {
    const schema = server.newSchema();
    const open = (aheadMs: number): Promise<PostgresStore> =>
      openPostgresStore({ url: server.url, poolMax: 2, schema, localMs: () => Date.now() + aheadMs });
    await using late = await open(-10 * MINUTE_MS);
    await using early = await open(10 * MINUTE_MS);
    const claim = (store: PostgresStore, owner: string) => {
      const nowMs = store.nowMs();
      const units = [{ kind: "sweep", key: "到期" }] as const;
      return store.claims.claim({ units, owner, nowMs, untilMs: nowMs + MINUTE_MS });
    };
    assert.equal((await claim(late, "慢")).length, 1);
    assert.equal((await claim(early, "快")).length, 0);
  });
});
