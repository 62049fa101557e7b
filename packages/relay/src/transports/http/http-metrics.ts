import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** What is measured: calls by route and status, their time, open mail by state, memory. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #calls: Counter<"method" | "route" | "status">;
  readonly #seconds: Histogram<"route">;
  readonly #countByCall = new Map<string, { inc(): void }>();
  readonly #timeByRoute = new Map<string, { observe(seconds: number): void }>();

  constructor(openMail: () => Promise<ReadonlyMap<string, number>>) {
    const registers = [this.#registry];
    this.#calls = new Counter({
      name: "a2a_relay_http_requests_total",
      help: "Answered HTTP requests",
      labelNames: ["method", "route", "status"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "a2a_relay_http_request_seconds",
      help: "Time to answer, long polls included",
      labelNames: ["route"],
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
      registers,
    });
    new Gauge({
      name: "a2a_relay_open_deliveries",
      help: "Mail that is not settled, by state",
      labelNames: ["state"],
      registers,
      async collect() {
        this.reset();
        for (const [state, count] of await openMail()) this.set({ state }, count);
      },
    });
    new Gauge({
      name: "a2a_relay_resident_memory_bytes",
      help: "Resident memory of the process",
      registers,
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** On the way of every request, so label lookups are remembered. */
  record(method: string, route: string, status: number, seconds: number): void {
    const key = `${method} ${route} ${status}`;
    let count = this.#countByCall.get(key);
    if (count === undefined) {
      count = this.#calls.labels(method, route, String(status));
      this.#countByCall.set(key, count);
    }
    count.inc();
    let time = this.#timeByRoute.get(route);
    if (time === undefined) {
      time = this.#seconds.labels(route);
      this.#timeByRoute.set(route, time);
    }
    time.observe(seconds);
  }
}
