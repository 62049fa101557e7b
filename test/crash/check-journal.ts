import { type DeliveryState, isSettled } from "@a2a-relay/protocol";
import { type Entry, entriesOf, type JournalEvent } from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

/** The chain holds after every crash, and never gets shorter. */
export function checkJournalVerifies(entries: readonly Entry[], verdict: Verdict): void {
  const verifications = entriesOf(entries, "verify");
  for (const [index, { ok, problem, lastSeq }] of verifications.entries()) {
    verdict.expect(ok, () => `the journal does not verify: ${problem}`);
    const before = verifications[index - 1]?.lastSeq ?? 0;
    verdict.expect(lastSeq >= before, () => `the journal had ${before} events and has ${lastSeq} now`);
  }
  const lastKill = entriesOf(entries, "kill").at(-1)?.end ?? 0;
  verdict.expect(
    (verifications.at(-1)?.start ?? 0) > lastKill,
    () => "the journal was not verified at the end",
  );
}

const STATE_AFTER: Readonly<Record<string, DeliveryState>> = {
  "message.accepted": "available",
  "message.leased": "leased",
  "message.released": "available",
  "message.requeued": "available",
  "message.acknowledged": "acknowledged",
  "message.expired": "expired",
  "message.withdrawn": "withdrawn",
  "message.dead": "dead",
};

/** A change and its event are one commit: replaying the events of a message gives its state. */
export function checkJournalMatchesState(entries: readonly Entry[], verdict: Verdict): void {
  const events = entriesOf(entries, "journal").flatMap((journal) => journal.events);
  for (const [index, event] of events.entries()) {
    verdict.expect(event.seq === index + 1, () => `event ${index + 1} is missing: there is ${event.seq}`);
  }
  const fetches = new Map(entriesOf(entries, "fetch").map((fetch) => [fetch.messageId, fetch.found]));
  for (const [messageId, own] of groupBy(events, (event) => event.messageId)) {
    const { state, attempt, problem } = replay(own);
    verdict.expect(problem === undefined, () => `the journal of message ${messageId} says ${problem}`);
    const found = fetches.get(messageId);
    verdict.expect(
      found?.state === state && found?.attempt === attempt,
      () =>
        `message ${messageId} is ${found?.state}, attempt ${found?.attempt}; its events say ${state}, ${attempt}`,
    );
  }
}

function replay(events: readonly JournalEvent[]): {
  readonly state: DeliveryState | undefined;
  readonly attempt: number;
  readonly problem: string | undefined;
} {
  let state: DeliveryState | undefined;
  let attempt = 0;
  let problem: string | undefined;
  for (const { type } of events) {
    const next = STATE_AFTER[type];
    if (next === undefined) continue;
    if (state !== undefined && isSettled(state)) problem ??= `${type} after it was ${state}`;
    if (type === "message.leased") attempt += 1;
    state = next;
  }
  return { state, attempt, problem };
}
