import { checkAnswersExplained, checkComesUp } from "./check-answers.ts";
import { checkJournalMatchesState, checkJournalVerifies } from "./check-journal.ts";
import { checkAttemptsGrow, checkOneHolder, checkStaleLeasesRefused } from "./check-leases.ts";
import { checkOpenDeliveriesShown, checkOrder, checkSettledStaysSettled } from "./check-mailboxes.ts";
import {
  checkAcceptedOnce,
  checkAnsweredSendsKept,
  checkAtomicBatches,
  checkDeadMessagesTell,
  checkSameKeySameReceipt,
} from "./check-sends.ts";
import { checkEndingsAreFinal, checkOneCompletion } from "./check-tasks.ts";
import { checkWebhooks } from "./check-webhooks.ts";
import type { Entry } from "./history.ts";
import { type Check, Verdict } from "./verdict.ts";

/** What must hold of every history, whatever was killed when. */
export const INVARIANTS = {
  "an answered send is kept, word for word": checkAnsweredSendsKept,
  "the same key gives the same receipt": checkSameKeySameReceipt,
  "a message is accepted once, or never when refused": checkAcceptedOnce,
  "an atomic batch is all or none": checkAtomicBatches,
  "a dead message tells its sender": checkDeadMessagesTell,
  "a task has at most one accepted completion, the one it shows": checkOneCompletion,
  "the end of a task is final": checkEndingsAreFinal,
  "a settled delivery never comes back": checkSettledStaysSettled,
  "an open delivery is shown to its reader": checkOpenDeliveriesShown,
  "messages are read in the order of their acceptance": checkOrder,
  "lease attempts grow": checkAttemptsGrow,
  "a leased delivery has one holder": checkOneHolder,
  "a stale lease finishes nothing": checkStaleLeasesRefused,
  "a webhook is repeated only after a failure": checkWebhooks,
  "the journal verifies and never shrinks": checkJournalVerifies,
  "the journal and the mailboxes agree": checkJournalMatchesState,
  "every refusal has a reason in what was done": checkAnswersExplained,
  "the relay comes up by itself": checkComesUp,
} as const satisfies Readonly<Record<string, Check>>;
export type Invariant = keyof typeof INVARIANTS;

export interface Violation {
  readonly invariant: Invariant;
  readonly text: string;
}

export interface CheckReport {
  readonly violations: readonly Violation[];
  /** How many comparisons each invariant stood. */
  readonly checked: ReadonlyMap<Invariant, number>;
}

export function checkHistory(entries: readonly Entry[]): CheckReport {
  const violations: Violation[] = [];
  const checked = new Map<Invariant, number>();
  for (const [name, check] of Object.entries(INVARIANTS)) {
    const invariant = name as Invariant;
    const verdict = new Verdict();
    check(entries, verdict);
    checked.set(invariant, verdict.checked);
    violations.push(...verdict.violations.map((text) => ({ invariant, text })));
  }
  return { violations, checked };
}
