import { type Figure, figureOf } from "../figure.ts";
import type { FlowRunner, Runner, Samples } from "./rounds.ts";

/** What every measured runner shows: how many a second, at which price, and that the load was not the limit. */
export function rateFigures(
  runners: readonly (Runner | FlowRunner)[],
  samples: readonly Samples[],
): readonly Figure[] {
  const rates = runners.map(({ name, aim }, index) =>
    figureOf(name, "/s", samples[index]?.perSecond ?? [], aim === undefined ? {} : { aim }),
  );
  const prices = runners.flatMap(({ name }, index) => {
    const cpuMicros = samples[index]?.cpuMicros ?? [];
    return cpuMicros.length === 0 ? [] : [figureOf(`${name}: server CPU a message`, "µs", cpuMicros)];
  });
  const busy = samples.flatMap((sample) => sample.loadBusyPercent);
  return [...rates, ...prices, figureOf("load generator busy", "%", busy)];
}
