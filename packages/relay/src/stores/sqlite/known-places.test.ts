import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { aNewMessage, deliveryOf, OTHER_TENANT, TENANT } from "../../../testing/store-builders.ts";
import { openDatabase } from "./database.ts";
import { KnownPlaces } from "./known-places.ts";
import { Ledger } from "./ledger.ts";

function setup(): { readonly ledger: Ledger; readonly known: KnownPlaces } {
  const ledger = new Ledger(openDatabase({ path: ":memory:" }).database, { isAwaited: () => true });
  return { ledger, known: new KnownPlaces(ledger) };
}

describe("what is known of deliveries", () => {
  const leased = deliveryOf(aNewMessage(), { state: "leased", leaseId: "租约", version: 2 });

  it("gives leased mail without a look, to its own tenant only, until it changes", () => {
    const { known } = setup();
    known.noteLeased({ delivery: leased, ref: 7 });
    assert.equal(known.leased(TENANT, leased.messageId), leased);
    assert.equal(known.leased(OTHER_TENANT, leased.messageId), undefined);
    assert.deepEqual(known.take(leased), { delivery: leased, ref: 7 });
    assert.equal(known.leased(TENANT, leased.messageId), undefined);
  });

  it("forgets a lease that came to nothing", () => {
    const { ledger, known } = setup();
    const before = ledger.mark();
    known.noteLeased({ delivery: leased, ref: 7 });
    ledger.rollBackTo(before);
    assert.equal(known.leased(TENANT, leased.messageId), undefined);
  });

  it("gives the place of a delivery only for the version that was seen", () => {
    const { known } = setup();
    known.noteRead({ delivery: leased, ref: 7 });
    assert.equal(known.leased(TENANT, leased.messageId), undefined);
    assert.equal(known.take({ ...leased, version: 3 }), undefined);
    known.noteRead({ delivery: leased, ref: 7 });
    assert.equal(known.take({ ...leased, tenant: OTHER_TENANT }), undefined);
    known.noteRead({ delivery: leased, ref: 7 });
    assert.equal(known.take(leased)?.ref, 7);
  });
});
