import { type Figure, figureOf } from "../figure.ts";
import type { Samples } from "./rounds.ts";

/** What every measured runner shows: how many a second, at which price, and that the load was not the limit. */
export function rateFigures(samples: readonly Samples[]): readonly Figure[] {
  const busy = samples.flatMap((sample) => sample.loadBusyPercent);
  return [...speedFigures(samples, "server"), figureOf("load generator busy", "%", busy)];
}

/** How many a second, and the CPU of `server` for each. */
export function speedFigures(samples: readonly Samples[], server: string): readonly Figure[] {
  const rates = samples.map(({ name, aim, perSecond }) =>
    figureOf(name, "/s", perSecond, aim === undefined ? {} : { aim }),
  );
  const prices = samples.flatMap(({ name, cpuMicros }) =>
    cpuMicros.length === 0 ? [] : [figureOf(`${name}: ${server} CPU a message`, "µs", cpuMicros)],
  );
  return [...rates, ...prices];
}
