import { startPostgres } from "../../contestants/postgres/postgres-contestants.ts";
import type { Figure } from "../../figure.ts";
import { bothCores } from "../../machine/cores.ts";
import type { Bench } from "../bench.ts";
import { flatnessFigures } from "./flatness.ts";
import { throughputFigures } from "./throughput.ts";
import { wakeUpFigures } from "./wake-ups.ts";

/** Nine contestants take turns: shorter ones, so that a quick run takes less than 90 seconds. */
const WARM_UP_SHARE = 0.2;
const ROUND_SHARE = 0.8;

/** The relay on PostgreSQL: on one server, which shares both cores with what calls it. */
export async function measurePostgres(given: Bench): Promise<readonly Figure[]> {
  const bench: Bench = {
    ...given,
    cores: bothCores(given.cores),
    warmUpMs: given.warmUpMs * WARM_UP_SHARE,
    roundMs: given.roundMs * ROUND_SHARE,
  };
  await using server = await startPostgres(bench);
  return [
    ...(await throughputFigures(bench, server)),
    ...(await wakeUpFigures(bench, server)),
    ...(await flatnessFigures(bench, server)),
  ];
}
