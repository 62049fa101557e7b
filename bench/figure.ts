import { median } from "./statistics.ts";

export type Bound = { readonly atLeast: number } | { readonly atMost: number };

export type Unit = "/s" | "x" | "s" | "ms" | "µs" | "KiB" | "MiB" | "%";

/** One measured number. With `must` it is a promise: the bench fails when it is broken. */
export interface Figure {
  readonly name: string;
  readonly unit: Unit;
  readonly value: number;
  /** Lowest and highest of the rounds that `value` is the median of. */
  readonly range?: readonly [number, number];
  readonly must?: Bound;
  readonly aim?: Bound;
}

export function figureOf(
  name: string,
  unit: Unit,
  rounds: readonly number[],
  bounds: Pick<Figure, "must" | "aim"> = {},
): Figure {
  return { name, unit, value: median(rounds), range: [Math.min(...rounds), Math.max(...rounds)], ...bounds };
}

/** Rounds are compared with their neighbours in time, so that a slow minute of the machine hits both sides. */
export function ratioOf(
  name: string,
  over: readonly number[],
  under: readonly number[],
  bounds: Pick<Figure, "must" | "aim"> = {},
): Figure {
  const ratios = over.map((value, round) => value / (under[round] ?? Number.NaN));
  return figureOf(name, "x", ratios, bounds);
}

export function meets(value: number, bound: Bound | undefined): boolean {
  if (bound === undefined) return true;
  return "atLeast" in bound ? value >= bound.atLeast : value <= bound.atMost;
}
