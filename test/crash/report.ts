import type { CrashRunReport } from "./crash-run.ts";
import { groupBy } from "./verdict.ts";

/** Of each kind; the first ones tell the most. */
const VIOLATIONS_SHOWN_MAX = 5;
const LINE_CHARS_MAX = 400;

/** The run in lines for people: what was done, what was compared, what was wrong. */
export function reportLines(report: CrashRunReport): readonly string[] {
  const counts = new Map<string, number>();
  let unknown = 0;
  for (const entry of report.entries) {
    counts.set(entry.act, (counts.get(entry.act) ?? 0) + 1);
    if ("outcome" in entry && entry.outcome === "unknown") unknown += 1;
  }
  const acts = [...counts].map(([act, count]) => `${count} ${act}`).join(", ");
  const seconds = (report.tookMs / 1_000).toFixed(1);
  return [
    `${counts.get("kill") ?? 0} kills in ${seconds} s; ${acts}; ${unknown} outcomes unknown`,
    ...[...report.checked].map(([invariant, count]) => `  ${invariant}: compared ${count} times`),
    ...violationLines(report),
    ...(report.violations.length === 0
      ? ["nothing was violated"]
      : [`${report.violations.length} violations; the relay's files are kept in ${report.directory}`]),
  ];
}

function violationLines({ violations }: CrashRunReport): readonly string[] {
  return [...groupBy(violations, (violation) => violation.invariant)].flatMap(([invariant, found]) => [
    `VIOLATED ${found.length} times: ${invariant}`,
    ...found.slice(0, VIOLATIONS_SHOWN_MAX).map(({ text }) => `  ${text.slice(0, LINE_CHARS_MAX)}`),
  ]);
}
