import { Gauge, Registry } from "prom-client";
import { StreamMeter } from "../streams/stream-meter.ts";

const CALLS = "a2a_relay_http_requests_total";
const SECONDS = "a2a_relay_http_request_seconds";
/** Upper bounds of the histogram's buckets, in seconds. */
const BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60] as const;

/** Whose figures somebody may see. */
export interface MetricsScope {
  readonly tenants: readonly string[];
  /** Calls, times and memory too, which are of the process and not of a tenant. */
  readonly isProcessWide: boolean;
}

/** What is measured: calls by route and status, their time, streams, open mail by state, memory. */
export class HttpMetrics {
  readonly streams = new StreamMeter();
  readonly #openDeliveries: (tenant: string) => Promise<ReadonlyMap<string, number>>;
  readonly #process = new Registry();
  readonly #routes = new Map<string, RouteMetrics>();

  constructor(openDeliveries: (tenant: string) => Promise<ReadonlyMap<string, number>>) {
    this.#openDeliveries = openDeliveries;
    new Gauge({
      name: "a2a_relay_resident_memory_bytes",
      help: "Resident memory of the process",
      registers: [this.#process],
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
  }

  get contentType(): string {
    return this.#process.contentType;
  }

  /** The counters of one route; the same ones for the same route. */
  route(method: string, route: string): RouteMetrics {
    const key = `${method} ${route}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const created = new RouteMetrics(method, route);
    this.#routes.set(key, created);
    return created;
  }

  async text({ tenants, isProcessWide }: MetricsScope): Promise<string> {
    const openDeliveries = await this.#openMailText(tenants);
    if (!isProcessWide) return openDeliveries;
    const called = [...this.#routes.values()].filter((route) => route.isCalled);
    const lines = [
      `# HELP ${CALLS} Answered HTTP requests`,
      `# TYPE ${CALLS} counter`,
      ...called.flatMap((route) => route.callLines()),
      `# HELP ${SECONDS} Time to answer, long polls included`,
      `# TYPE ${SECONDS} histogram`,
      ...called.flatMap((route) => route.timeLines()),
      ...this.streams.lines(),
    ];
    return `${openDeliveries}\n${await this.#process.metrics()}\n${lines.join("\n")}\n`;
  }

  /** Made anew each time, because each caller sees other tenants. */
  async #openMailText(tenants: readonly string[]): Promise<string> {
    const registry = new Registry();
    const gauge = new Gauge({
      name: "a2a_relay_open_deliveries",
      help: "MailboxMessage that is not settled, by tenant and state",
      labelNames: ["tenant", "state"],
      registers: [registry],
    });
    for (const tenant of tenants) {
      for (const [state, count] of await this.#openDeliveries(tenant)) gauge.set({ tenant, state }, count);
    }
    return registry.metrics();
  }
}

/** Plain numbers, because every request passes here: a metrics library would cost more than the routing. */
export class RouteMetrics {
  readonly #method: string;
  readonly #route: string;
  readonly #countByStatus = new Map<number, number>();
  readonly #countByBucket = BUCKETS.map(() => 0);
  #count = 0;
  #seconds = 0;

  constructor(method: string, route: string) {
    this.#method = method;
    this.#route = route;
  }

  get isCalled(): boolean {
    return this.#count > 0;
  }

  record(status: number, seconds: number): void {
    this.#countByStatus.set(status, (this.#countByStatus.get(status) ?? 0) + 1);
    this.#count += 1;
    this.#seconds += seconds;
    const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
    if (bucket !== -1) this.#countByBucket[bucket] = (this.#countByBucket[bucket] ?? 0) + 1;
  }

  callLines(): readonly string[] {
    const labels = `method="${this.#method}",route="${this.#route}"`;
    return [...this.#countByStatus].map(
      ([status, count]) => `${CALLS}{${labels},status="${status}"} ${count}`,
    );
  }

  timeLines(): readonly string[] {
    const labels = `method="${this.#method}",route="${this.#route}"`;
    let atMost = 0;
    const buckets = BUCKETS.map((bound, index) => {
      atMost += this.#countByBucket[index] ?? 0;
      return `${SECONDS}_bucket{${labels},le="${bound}"} ${atMost}`;
    });
    return [
      ...buckets,
      `${SECONDS}_bucket{${labels},le="+Inf"} ${this.#count}`,
      `${SECONDS}_sum{${labels}} ${this.#seconds}`,
      `${SECONDS}_count{${labels}} ${this.#count}`,
    ];
  }
}
