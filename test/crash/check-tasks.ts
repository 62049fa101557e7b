import { isTerminal } from "@a2a-relay/protocol";
import { type Entry, entriesOf, type FinishEntry, type TaskFetchEntry } from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

const ENDINGS: ReadonlySet<string> = new Set([
  "task.completed",
  "task.failed",
  "task.canceled",
  "task.rejected",
]);

/** At most one completion of a task is accepted, and it is the one that everybody sees from then on. */
export function checkOneCompletion(entries: readonly Entry[], verdict: Verdict): void {
  const fetches = groupBy(entriesOf(entries, "fetch_task"), (fetch) => fetch.taskId);
  const finishes = groupBy(entriesOf(entries, "finish"), (finish) => finish.taskId);
  const bodies = new Map(entriesOf(entries, "fetch").map((fetch) => [fetch.messageId, fetch.found?.body]));
  for (const [taskId, tries] of finishes) {
    const accepted = tries.filter((finish) => finish.outcome === "ok");
    const texts = new Set(accepted.map((finish) => finish.text));
    verdict.expect(
      texts.size <= 1,
      () => `task ${taskId} was completed ${texts.size} times: ${[...texts].join(", ")}`,
    );
    for (const fetch of fetches.get(taskId) ?? []) checkFetch(fetch, tries, bodies, verdict);
    verdict.expect(
      accepted.length === 0 ||
        (fetches.get(taskId) ?? []).some((fetch) => fetch.start > (accepted[0]?.end ?? 0)),
      () => `task ${taskId} was not fetched after its completion`,
    );
  }
}

/** A task that was seen in a final state is never seen in another, and the journal has one ending of it. */
export function checkEndingsAreFinal(entries: readonly Entry[], verdict: Verdict): void {
  for (const [taskId, fetches] of groupBy(entriesOf(entries, "fetch_task"), (fetch) => fetch.taskId)) {
    let ended: TaskFetchEntry["found"];
    for (const { found } of fetches) {
      if (ended !== undefined) {
        verdict.expect(
          found?.state === ended.state && found.resultMessageId === ended.resultMessageId,
          () => `task ${taskId} was ${ended?.state} (${ended?.resultMessageId}) and is ${found?.state} now`,
        );
      }
      if (found !== undefined && isTerminal(found.state)) ended ??= found;
    }
  }
  const endings = entriesOf(entries, "journal")
    .flatMap((journal) => journal.events)
    .filter((event) => ENDINGS.has(event.type));
  for (const [taskId, events] of groupBy(endings, (event) => event.taskId)) {
    verdict.expect(
      events.length === 1,
      () =>
        `the journal ends task ${taskId} ${events.length} times: ${events.map(({ type }) => type).join(", ")}`,
    );
  }
}

function checkFetch(
  fetch: TaskFetchEntry,
  tries: readonly FinishEntry[],
  bodies: ReadonlyMap<string, string | undefined>,
  verdict: Verdict,
): void {
  const { taskId, found } = fetch;
  verdict.expect(found !== undefined, () => `task ${taskId} is gone`);
  if (found === undefined) return;
  const accepted = tries.find((finish) => finish.outcome === "ok" && finish.end < fetch.start);
  if (accepted !== undefined) {
    verdict.expect(
      found.state === "completed" && found.text === accepted.text,
      () => `task ${taskId} was completed with ${accepted.text} and shows ${found.state}: ${found.text}`,
    );
  }
  if (found.state !== "completed") return;
  const possible = tries.filter((finish) => finish.outcome !== "refused" && finish.start < fetch.end);
  verdict.expect(
    possible.some((finish) => finish.text === found.text),
    () => `task ${taskId} shows a completion that no worker made: ${found.text}`,
  );
  verdict.expect(
    bodies.get(found.resultMessageId ?? "") === found.text,
    () => `the result message of task ${taskId} does not say ${found.text}`,
  );
}
