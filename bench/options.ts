import { parseArgs } from "node:util";

export const MEASURES = [
  "send",
  "e2e",
  "batch",
  "latency",
  "memory",
  "growth",
  "trust",
  "streams",
  "stream-latency",
  "socket",
  "a2a",
  "postgres",
] as const;
export type MeasureName = (typeof MEASURES)[number];

export interface BenchOptions {
  readonly quick: boolean;
  readonly json: boolean;
  readonly only: readonly MeasureName[];
}

export const USAGE = `npm run bench -- [--quick] [--only ${MEASURES.join(",")}] [--json]

  --quick  fewer and shorter rounds: a first impression in a few minutes
  --only   these measures and no others, separated by commas
  --json   one JSON object on stdout instead of a table`;

/** Throws with a sentence for people. */
export function readOptions(args: readonly string[]): BenchOptions | "help" {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      only: { type: "string", default: MEASURES.join(",") },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return "help";
  return { quick: values.quick, json: values.json, only: values.only.split(",").map(readMeasure) };
}

function readMeasure(text: string): MeasureName {
  const name = MEASURES.find((measure) => measure === text.trim());
  if (name !== undefined) return name;
  throw new Error(`--only: "${text}" is no measure; there are ${MEASURES.join(", ")}`);
}
