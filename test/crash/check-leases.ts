import { deliveryActs, type Entry, entriesOf, type Grant } from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

interface TimedGrant extends Grant {
  readonly start: number;
  readonly end: number;
}

/** Each lease of a message has a higher attempt than those before it, and a new id. */
export function checkAttemptsGrow(entries: readonly Entry[], verdict: Verdict): void {
  const leaseIds = new Set<string>();
  for (const [messageId, grants] of grantsByMessage(entries)) {
    for (const [index, grant] of grants.entries()) {
      verdict.expect(!leaseIds.has(grant.leaseId), () => `lease ${grant.leaseId} was granted twice`);
      leaseIds.add(grant.leaseId);
      const before = grants[index - 1];
      if (before === undefined) continue;
      verdict.expect(
        grant.attempt > before.attempt && grant.end > before.start,
        () => `attempt ${before.attempt} on message ${messageId} came after attempt ${grant.attempt}`,
      );
    }
  }
}

/**
 * A leased message goes to no other worker until its holder gives it back. Work that was declared idempotent
 * is left out, because the clock may give it back too.
 */
export function checkOneHolder(entries: readonly Entry[], verdict: Verdict): void {
  const returns = groupBy(
    deliveryActs(entries).filter(
      ({ act, outcome }) => (act === "release" || act === "requeue") && outcome !== "refused",
    ),
    (entry) => entry.messageId,
  );
  const idempotent = new Set(
    entriesOf(entries, "send")
      .filter((send) => send.message.idempotent)
      .map((send) => send.message.body),
  );
  for (const [messageId, grants] of grantsByMessage(entries)) {
    for (const [index, grant] of grants.entries()) {
      const before = grants[index - 1];
      // After a lease whose answer was lost, its holder is unknown.
      if (before?.attempt !== grant.attempt - 1 || idempotent.has(grant.body)) continue;
      // One without an answer may have come into effect later.
      const returned = (returns.get(messageId) ?? []).some(
        ({ start, end, outcome }) => start < grant.end && (outcome === "unknown" || end > before.start),
      );
      verdict.expect(
        returned,
        () => `message ${messageId} was leased again (attempt ${grant.attempt}) while it was leased`,
      );
    }
  }
}

/** Fencing: once a newer lease was granted, the holder of an older one can finish nothing. */
export function checkStaleLeasesRefused(entries: readonly Entry[], verdict: Verdict): void {
  const grants = grantsByMessage(entries);
  const acts = [
    ...entriesOf(entries, "finish"),
    ...deliveryActs(entries).filter(({ act }) => act !== "requeue" && act !== "force_error"),
  ];
  for (const { act, messageId, leaseId, attempt, outcome, start } of acts) {
    if (leaseId === undefined || attempt === undefined) continue;
    const newer = grants.get(messageId)?.find((grant) => grant.attempt > attempt && grant.end < start);
    if (newer === undefined) continue;
    verdict.expect(
      outcome !== "ok",
      () =>
        `${act} of message ${messageId} under attempt ${attempt} was accepted after attempt ${newer.attempt}`,
    );
  }
}

/** By message and attempt: the answers of two relays may overtake each other. */
function grantsByMessage(entries: readonly Entry[]): ReadonlyMap<string, readonly TimedGrant[]> {
  const timed = entriesOf(entries, "lease").flatMap(({ grants, start, end }) =>
    grants.map((grant) => ({ ...grant, start, end })),
  );
  timed.sort((one, other) => one.attempt - other.attempt);
  return groupBy(timed, (grant) => grant.messageId);
}
