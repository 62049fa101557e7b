import type { Bench } from "./bench.ts";

/** Starts what is measured, leaves with `servers` what has to be ended, and answers with what one round does. */
type Start = (servers: AsyncDisposableStack) => Promise<(round: number) => Promise<void>>;

/**
 * All rounds of a measure, after each of several starts: a process may be faster or slower until it ends than the same
 * program started again.
 */
export async function roundsOverStarts(bench: Bench, start: Start): Promise<void> {
  for (let started = 0; started < bench.starts; started += 1) {
    await using servers = new AsyncDisposableStack();
    const runRound = await start(servers);
    for (let round = 0; round < bench.rounds; round += 1) {
      bench.progress(`start ${started + 1} of ${bench.starts}, round ${round + 1} of ${bench.rounds}`);
      await runRound(round);
    }
  }
}
