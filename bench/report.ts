import { type Bound, type Figure, meets } from "./figure.ts";
import type { Machine } from "./machine/machine.ts";
import type { MeasureName } from "./options.ts";

export interface MeasureReport {
  readonly measure: MeasureName;
  readonly figures: readonly Figure[];
}

export const TITLES: Readonly<Record<MeasureName, string>> = {
  send: "Single durable send",
  e2e: "Send, lease, acknowledge: round trips a second",
  batch: "Batch send: messages a second",
  latency: "Latency at 200 messages a second",
  memory: "Memory of waiting readers",
  growth: "Cost of an act as the store grows",
  trust: "What keys and capabilities cost: requests for work a second",
  streams: "Many open streams: their memory, and their return after a restart",
  "stream-latency": "Latency of open streams at 200 messages a second",
  socket: "Send, stream, acknowledge over sockets: round trips a second",
  a2a: "SendMessage of A2A, without waiting: calls a second",
  postgres: "On PostgreSQL, beside queues that are libraries",
};

export function machineLines(machine: Machine): readonly string[] {
  const { fsyncMs } = machine;
  const disk = machine.inMemoryDisk ? "IN MEMORY, so nothing here was durable" : "a real disk";
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}`,
    `Node ${machine.node}, SQLite ${machine.sqlite}; ${machine.pinning}`,
    `data in ${machine.directory}, ${disk}; fsync p50 ${show(fsyncMs.p50)} ms, p99 ${show(fsyncMs.p99)} ms`,
    `load average before the start: ${show(machine.loadAverage)}`,
  ];
}

export function tableLines({ measure, figures }: MeasureReport): readonly string[] {
  const rows = figures.map((figure) => [
    figure.name,
    `${show(figure.value)} ${figure.unit}`,
    figure.range === undefined ? "" : `${show(figure.range[0])} … ${show(figure.range[1])}`,
    boundText("must", figure.must) + boundText(figure.must === undefined ? "aim" : ", aim", figure.aim),
    verdictOf(figure),
  ]);
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) =>
        column === 1 ? cell.padStart(widths[1] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
  return ["", TITLES[measure], ...lines.map((line) => `  ${line}`)];
}

export function isBroken(figure: Figure): boolean {
  return !meets(figure.value, figure.must);
}

function verdictOf(figure: Figure): string {
  if (isBroken(figure)) return "BROKEN";
  if (!meets(figure.value, figure.aim))
    return figure.must === undefined ? "short of the aim" : "kept, short of the aim";
  return figure.must === undefined && figure.aim === undefined ? "" : "kept";
}

function boundText(word: string, bound: Bound | undefined): string {
  if (bound === undefined) return "";
  return "atLeast" in bound ? `${word} ≥ ${bound.atLeast}` : `${word} ≤ ${bound.atMost}`;
}

function show(value: number): string {
  const digits = Math.max(0, 2 - Math.max(0, Math.floor(Math.log10(Math.abs(value) || 1))));
  return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}
