import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkHistory, INVARIANTS, type Invariant } from "./check-history.ts";
import type { Entry } from "./history.ts";
import {
  accepted,
  BOB,
  change,
  changeJournal,
  changeFetch,
  event,
  FIRST_OF_BATCH,
  grant,
  honest,
  KEYED,
  late,
  message,
  OTHER,
  seen,
  sent,
} from "./honest-history.ts";

describe("checkHistory", () => {
  it("finds nothing in an honest history, having compared something for every invariant", () => {
    const report = checkHistory(honest());
    assert.deepEqual(report.violations, []);
    for (const invariant of Object.keys(INVARIANTS)) {
      assert.ok((report.checked.get(invariant as Invariant) ?? 0) > 0, invariant);
    }
  });

  it("accepts both outcomes of a send whose answer was lost", () => {
    const lost = message("no answer", {});
    const never = [...honest(), sent(lost, "unknown")];
    assert.deepEqual(checkHistory(never).violations, []);
    const once = accepted(never, "m20", lost);
    assert.deepEqual(checkHistory(once).violations, []);
    assert.deepEqual(broken(accepted(once, "m21", lost)), [
      "a message is accepted once, or never when refused",
    ]);
  });

  it("accepts both outcomes of a completion whose answer was lost", () => {
    const entries = change(honest(), "finish", (entry) =>
      entry.outcome === "ok" ? { ...entry, outcome: "unknown" } : entry,
    );
    assert.deepEqual(checkHistory(entries).violations, []);
  });

  for (const [title, invariant, plant] of planted()) {
    it(`finds ${title}`, () => {
      assert.ok(broken(plant(honest())).includes(invariant), broken(plant(honest())).join("; "));
    });
  }
});

type Planted = readonly [
  title: string,
  invariant: Invariant,
  plant: (entries: readonly Entry[]) => readonly Entry[],
];

/** Each a fault that a relay could have, and the invariant that must notice it. */
function planted(): readonly Planted[] {
  return [
    [
      "a lost send",
      "an answered send is kept, word for word",
      (entries) => changeFetch(entries, "m1", undefined),
    ],
    [
      "a webhook that is repeated though nothing failed",
      "a webhook is repeated only after a failure",
      (entries) => [...entries, late({ act: "webhook", messageId: "m2" })],
    ],
    [
      "a webhook that is shown as delivered and never came",
      "a webhook is repeated only after a failure",
      (entries) => changeFetch(entries, "m1", { push: "delivered" }),
    ],
    [
      "changed content",
      "an answered send is kept, word for word",
      (entries) => changeFetch(entries, "m1", { body: "other" }),
    ],
    [
      "an answered send that was never fetched",
      "an answered send is kept, word for word",
      (entries) => entries.filter((entry) => entry.act !== "fetch"),
    ],
    [
      "a changed receipt for the same key",
      "the same key gives the same receipt",
      (entries) =>
        change(entries, "send", (send) => (send.status === 200 ? { ...send, messageId: "m2" } : send)),
    ],
    [
      "a key that was new twice",
      "the same key gives the same receipt",
      (entries) => change(entries, "send", (send) => (send.status === 200 ? { ...send, status: 201 } : send)),
    ],
    [
      "a retry that was accepted as a second message",
      "a message is accepted once, or never when refused",
      (entries) => accepted(entries, "m20", KEYED),
    ],
    [
      "a refused message that exists all the same",
      "a message is accepted once, or never when refused",
      (entries) => accepted(entries, "m20", OTHER),
    ],
    [
      "a message that no sender wrote",
      "a message is accepted once, or never when refused",
      (entries) => accepted(entries, "m20", message("from nowhere", {})),
    ],
    [
      "half of an atomic batch",
      "an atomic batch is all or none",
      (entries) => accepted(entries, "m20", FIRST_OF_BATCH),
    ],
    [
      "a dead message whose sender knows nothing",
      "a dead message tells its sender",
      (entries) => changeFetch(entries, "m6", { replyTo: undefined }),
    ],
    [
      "a double completion",
      "a task has at most one accepted completion, the one it shows",
      (entries) => change(entries, "finish", (entry) => ({ ...entry, outcome: "ok" })),
    ],
    [
      "an accepted completion that is not shown",
      "a task has at most one accepted completion, the one it shows",
      (entries) =>
        change(entries, "fetch_task", (fetch) => ({
          ...fetch,
          found: { state: "submitted", text: undefined, resultMessageId: undefined },
        })),
    ],
    [
      "a completion that no worker made",
      "a task has at most one accepted completion, the one it shows",
      (entries) =>
        change(entries, "fetch_task", (fetch) => ({
          ...fetch,
          found: { state: "completed", text: "invented", resultMessageId: "m4" },
        })),
    ],
    [
      "a task that ended twice",
      "the end of a task is final",
      (entries) => changeJournal(entries, (events) => [...events, event("task.failed", "m3", "t1")]),
    ],
    [
      "a finished task that is open again",
      "the end of a task is final",
      (entries) => [
        ...entries,
        late({
          act: "fetch_task",
          taskId: "t1",
          found: { state: "working", text: undefined, resultMessageId: undefined },
        }),
      ],
    ],
    [
      "a settled delivery that is read again",
      "a settled delivery never comes back",
      (entries) => [
        ...entries,
        late({ act: "read", outcome: "ok", mailbox: BOB, limit: 50, deliveries: [seen("m1", KEYED)] }),
      ],
    ],
    [
      "a settled delivery that is leased again",
      "a settled delivery never comes back",
      (entries) => [
        ...entries,
        late({ act: "lease", outcome: "ok", mailbox: BOB, grants: [grant("m1", KEYED, "L9", 1)] }),
      ],
    ],
    [
      "an acknowledged delivery that turned dead",
      "a settled delivery never comes back",
      (entries) => changeFetch(entries, "m1", { state: "dead" }),
    ],
    [
      "an open delivery that a reader does not get",
      "an open delivery is shown to its reader",
      (entries) =>
        change(entries, "read", (read) => ({
          ...read,
          deliveries: read.deliveries.filter((delivery) => delivery.messageId !== "m2"),
        })),
    ],
    [
      "deliveries out of order",
      "messages are read in the order of their acceptance",
      (entries) => change(entries, "read", (read) => ({ ...read, deliveries: read.deliveries.toReversed() })),
    ],
    [
      "a journal in another order than the answers",
      "messages are read in the order of their acceptance",
      (entries) =>
        changeJournal(entries, ([first, second, third, ...rest]) =>
          [first, third, second, ...rest].flatMap((each) => each ?? []),
        ),
    ],
    [
      "an attempt number that does not grow",
      "lease attempts grow",
      (entries) =>
        change(entries, "lease", (lease) => ({
          ...lease,
          grants: lease.grants.map((each) => ({ ...each, attempt: 1 })),
        })),
    ],
    [
      "a lease id that was given twice",
      "lease attempts grow",
      (entries) =>
        change(entries, "lease", (lease) => ({
          ...lease,
          grants: lease.grants.map((each) => ({ ...each, leaseId: "L1" })),
        })),
    ],
    [
      "a leased delivery that was leased to another",
      "a leased delivery has one holder",
      (entries) => entries.filter((entry) => entry.act !== "requeue"),
    ],
    [
      "a stale lease that finished something",
      "a stale lease finishes nothing",
      (entries) =>
        change(entries, "finish", (entry) => ({ ...entry, outcome: entry.attempt === 1 ? "ok" : "refused" })),
    ],
    [
      "a journal that does not verify",
      "the journal verifies and never shrinks",
      (entries) =>
        change(entries, "verify", (verify) => ({ ...verify, ok: false, problem: "event 3 was changed" })),
    ],
    [
      "a journal that shrank",
      "the journal verifies and never shrinks",
      (entries) => [...entries, late({ act: "verify", ok: true, lastSeq: 1 })],
    ],
    [
      "a change without its event",
      "the journal and the mailboxes agree",
      (entries) =>
        changeJournal(entries, (events) =>
          events.filter(({ type, messageId }) => type !== "message.acknowledged" || messageId !== "m1"),
        ),
    ],
    [
      "a delivery that was settled twice",
      "the journal and the mailboxes agree",
      (entries) => changeJournal(entries, (events) => [...events, event("message.dead", "m1")]),
    ],
    [
      "an internal error",
      "every refusal has a reason in what was done",
      (entries) => [...entries, sent(message("refused", {}), "refused", { code: "internal" })],
    ],
    [
      "a busy relay that was not asked to stop",
      "every refusal has a reason in what was done",
      (entries) => [...entries, sent(message("refused", {}), "unknown", { code: "unavailable" })],
    ],
    [
      "an error in the relay's log",
      "every refusal has a reason in what was done",
      (entries) => [...entries, late({ act: "complaint", text: "internal error" })],
    ],
    [
      "a relay that does not come up",
      "the relay comes up by itself",
      (entries) => [...entries, late({ act: "kill", how: "at a random moment" })],
    ],
    [
      "a relay that comes up late",
      "the relay comes up by itself",
      (entries) => change(entries, "start", (start) => ({ ...start, tookMs: 60_000 })),
    ],
  ];
}

function broken(entries: readonly Entry[]): readonly string[] {
  return [...new Set(checkHistory(entries).violations.map((violation) => violation.invariant))];
}
