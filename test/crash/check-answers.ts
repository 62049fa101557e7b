import { DELIVERY_ACTS, type Entry, entriesOf } from "./history.ts";
import type { Verdict } from "./verdict.ts";

/** A relay that was killed is back by itself within this time, also on a busy machine. */
const START_MS_MAX = 15_000;

const LOST = ["lease_lost", "lease_required", "wrong_state"] as const;

/** What each act may be refused for; anything else is a fault of the relay. */
const REFUSALS: Readonly<Record<string, readonly string[]>> = {
  send: ["conflict"],
  finish: [...LOST, "task_finished", "conflict"],
  ...Object.fromEntries(DELIVERY_ACTS.map((act) => [act, LOST])),
};

/** While it stops, and while the database is out of reach, a relay may answer that it is unavailable. */
const EXCUSES: ReadonlySet<string> = new Set(["while it stops", "of its database connections"]);

/** The relay says nothing that these acts do not explain: no internal error, no missing message. */
export function checkAnswersExplained(entries: readonly Entry[], verdict: Verdict): void {
  const stops = entriesOf(entries, "kill").filter((kill) => EXCUSES.has(kill.how));
  for (const entry of entries) {
    if (entry.act === "complaint") verdict.expect(false, () => `the relay said: ${entry.text}`);
    if (!("outcome" in entry) || entry.code === undefined) continue;
    const { act, code, start, end } = entry;
    const stopping = stops.some((stop) => stop.start < end && stop.end > start);
    verdict.expect(
      entry.outcome === "unknown" ? stopping : (REFUSALS[act] ?? []).includes(code),
      () => `a ${act} was answered with ${code}: ${JSON.stringify(entry)}`,
    );
  }
}

/** A crash needs no repair by hand. */
export function checkComesUp(entries: readonly Entry[], verdict: Verdict): void {
  const starts = entriesOf(entries, "start");
  const kills = entriesOf(entries, "kill");
  for (const { tookMs } of starts) {
    verdict.expect(tookMs <= START_MS_MAX, () => `the relay took ${Math.round(tookMs)} ms to come up`);
  }
  verdict.expect((starts.at(-1)?.start ?? 0) > (kills.at(-1)?.end ?? 0), () => "it was not up at the end");
}
