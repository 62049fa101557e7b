export const STREAM_KINDS = ["mailbox", "task", "events", "a2a", "socket"] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

const OPEN = "a2a_relay_open_streams";
const SLOW = "a2a_relay_slow_readers_total";

/** How many streams are open, and how many readers were cut off because they did not take what they were sent. */
export class StreamMeter {
  readonly #open = new Map<StreamKind, number>(STREAM_KINDS.map((kind) => [kind, 0]));
  readonly #slow = new Map<StreamKind, number>(STREAM_KINDS.map((kind) => [kind, 0]));

  opened(kind: StreamKind): void {
    add(this.#open, kind, 1);
  }

  closed(kind: StreamKind): void {
    add(this.#open, kind, -1);
  }

  cutOff(kind: StreamKind): void {
    add(this.#slow, kind, 1);
  }

  lines(): readonly string[] {
    return [
      `# HELP ${OPEN} Streams and sockets that are open`,
      `# TYPE ${OPEN} gauge`,
      ...linesOf(OPEN, this.#open),
      `# HELP ${SLOW} Readers that were cut off because they did not take what they were sent`,
      `# TYPE ${SLOW} counter`,
      ...linesOf(SLOW, this.#slow),
    ];
  }
}

function add(counts: Map<StreamKind, number>, kind: StreamKind, by: number): void {
  counts.set(kind, (counts.get(kind) ?? 0) + by);
}

function linesOf(name: string, counts: ReadonlyMap<StreamKind, number>): readonly string[] {
  return [...counts].map(([kind, count]) => `${name}{kind="${kind}"} ${count}`);
}
