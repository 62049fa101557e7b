import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../relay/src/config/load-config.ts";
import { type RunningRelay, startRelay } from "../../relay/src/server/start-relay.ts";
import { RelayClient } from "../src/client/relay-client.ts";
import { type WireAnswer, type WireRequest, WireServer } from "./wire-server.ts";

/** `lose_reply`: the relay acts on the request, and the reply gets lost. */
export type Fault = WireAnswer | "lose_reply" | undefined;

/** A real relay behind a wire on which anything can go wrong. */
export class FaultyRelay {
  /** Called for each request; undefined passes it on. */
  fault: (request: WireRequest) => Fault | Promise<Fault> = () => undefined;
  /** The wire that agents under test use. */
  readonly wire = new WireServer((request) => this.#respond(request));
  readonly #directory: string;
  #relay: RunningRelay;
  #starts = 1;

  private constructor(directory: string, relay: RunningRelay) {
    this.#directory = directory;
    this.#relay = relay;
  }

  static async start(): Promise<FaultyRelay> {
    const directory = mkdtempSync(join(tmpdir(), "a2a-client-"));
    const faulty = new FaultyRelay(directory, await startRelay(configIn(directory, 1)));
    await faulty.wire.open();
    return faulty;
  }

  /** Calls the relay without faults. */
  get direct(): RelayClient {
    return new RelayClient({ url: this.#relay.url });
  }

  /** The relay restarts at the same address with an empty database. */
  async loseAllData(): Promise<void> {
    await this.#relay[Symbol.asyncDispose]();
    this.#starts += 1;
    this.#relay = await startRelay(configIn(this.#directory, this.#starts));
  }

  /** Sets a fault for the next request that fits. */
  once(fits: (request: WireRequest) => boolean, fault: Fault): void {
    let done = false;
    const before = this.fault;
    this.fault = (request) => {
      if (done || !fits(request)) return before(request);
      done = true;
      return fault;
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.wire.close();
    await this.#relay[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #respond(request: WireRequest): Promise<WireAnswer> {
    const fault = await this.fault(request);
    if (fault !== undefined && fault !== "lose_reply") return fault;
    const answer = await this.#forward(request);
    return fault === undefined ? answer : "reset";
  }

  async #forward({ method, path, query, body, signal }: WireRequest): Promise<WireAnswer> {
    const response = await fetch(`${this.#relay.url}${path}?${query}`, {
      method,
      signal,
      ...(method === "POST"
        ? { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
        : {}),
    });
    const headers = { "content-type": response.headers.get("content-type") ?? "" };
    return { status: response.status, headers, text: await response.text() };
  }
}

/** Requests to a route, by the end of its path. */
export function to(end: string): (request: WireRequest) => boolean {
  return ({ path }) => path.endsWith(end);
}

function configIn(directory: string, start: number): ReturnType<typeof loadConfig> {
  const env = {
    PORT: "0",
    A2A_RELAY_DATA: join(directory, String(start)),
    A2A_RELAY_LOG_LEVEL: "silent",
    A2A_RELAY_SWEEP_INTERVAL_MS: "20",
    A2A_RELAY_DRAIN_MS: "50",
  };
  return loadConfig({ env, flags: {}, dotenv: {} });
}
