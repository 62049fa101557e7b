import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { STREAM_KINDS, type StreamMeter } from "./event-stream.ts";

/** The figures that a caller may see. */
export interface MetricsScope {
  readonly tenants: readonly string[];
  /** Includes requests, times, streams and memory, which belong to no tenant. */
  readonly isProcessWide: boolean;
}

type OpenDeliveries = (tenant: string) => Promise<ReadonlyMap<string, number>>;

/** Measures requests by route and status, their time, streams, open deliveries by state, and memory. */
export class HttpMetrics {
  readonly streams: StreamMeter;
  readonly #openDeliveries: OpenDeliveries;
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: "a2a_relay_http_requests_total",
    help: "Answered HTTP requests",
    labelNames: ["method", "route", "status"],
    registers: [this.#registry],
  });
  readonly #seconds = new Histogram({
    name: "a2a_relay_http_request_seconds",
    help: "Time to answer, long polls included",
    labelNames: ["method", "route"],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers: [this.#registry],
  });

  constructor(openDeliveries: OpenDeliveries) {
    this.#openDeliveries = openDeliveries;
    this.streams = streamMeterIn(this.#registry);
    new Gauge({
      name: "a2a_relay_resident_memory_bytes",
      help: "Resident memory of the process",
      registers: [this.#registry],
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  record(labels: { readonly method: string; readonly route: string }, status: number, seconds: number): void {
    this.#requests.inc({ ...labels, status });
    this.#seconds.observe({ ...labels }, seconds);
  }

  async text({ tenants, isProcessWide }: MetricsScope): Promise<string> {
    const deliveries = await this.#deliveriesIn(tenants).then((registry) => registry.metrics());
    return isProcessWide ? `${deliveries}\n${await this.#registry.metrics()}` : deliveries;
  }

  /** A registry for each request, because each caller may see other tenants. */
  async #deliveriesIn(tenants: readonly string[]): Promise<Registry> {
    const registry = new Registry();
    const gauge = new Gauge({
      name: "a2a_relay_open_deliveries",
      help: "Deliveries that are not settled, by tenant and state",
      labelNames: ["tenant", "state"],
      registers: [registry],
    });
    for (const tenant of tenants) {
      for (const [state, count] of await this.#openDeliveries(tenant)) gauge.set({ tenant, state }, count);
    }
    return registry;
  }
}

function streamMeterIn(registry: Registry): StreamMeter {
  const open = new Gauge({
    name: "a2a_relay_open_streams",
    help: "Streams and sockets that are open",
    labelNames: ["kind"],
    registers: [registry],
  });
  const slow = new Counter({
    name: "a2a_relay_slow_readers_total",
    help: "Readers that the relay disconnected because they did not read in time",
    labelNames: ["kind"],
    registers: [registry],
  });
  // Every kind is listed from the start, with 0.
  for (const kind of STREAM_KINDS) {
    open.set({ kind }, 0);
    slow.inc({ kind }, 0);
  }
  return {
    opened: (kind) => open.inc({ kind }),
    closed: (kind) => open.dec({ kind }),
    cutOff: (kind) => slow.inc({ kind }),
  };
}
