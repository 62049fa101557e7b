/** When the loop ends: after a time, or after so many cycles of all callers together. */
export type LoopEnd = { readonly afterMs: number } | { readonly afterCycles: number };

export interface LoopResult {
  readonly cycles: number;
  readonly elapsedMs: number;
}

/**
 * Every caller, such as a connection, begins its next cycle as soon as it has finished the one before. `cycle` gets a
 * number that no other cycle of this loop has.
 */
export async function closedLoop<Caller>(
  callers: readonly Caller[],
  end: LoopEnd,
  cycle: (caller: Caller, number: number) => Promise<void>,
): Promise<LoopResult> {
  const start = performance.now();
  const endsAt = "afterMs" in end ? start + end.afterMs : Number.POSITIVE_INFINITY;
  const cyclesMax = "afterCycles" in end ? end.afterCycles : Number.POSITIVE_INFINITY;
  let begun = 0;
  const runOne = async (caller: Caller): Promise<void> => {
    while (begun < cyclesMax && performance.now() < endsAt) {
      begun += 1;
      await cycle(caller, begun);
    }
  };
  await Promise.all(callers.map(runOne));
  return { cycles: begun, elapsedMs: performance.now() - start };
}
