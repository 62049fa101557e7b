import type { EmbeddedServer } from "../../../packages/relay/testing/postgres-server.ts";
import { type QueueAct, type QueueName, QUEUES } from "../../contestants/postgres/postgres-queue.ts";
import { runCalls, startQueue, startRelayOn } from "../../contestants/postgres/postgres-contestants.ts";
import type { ServerProcess } from "../../contestants/server-process.ts";
import { type Figure, ratioOf } from "../../figure.ts";
import type { Bench } from "../bench.ts";
import { roundTrip } from "../end-to-end.ts";
import { speedFigures } from "../rate-figures.ts";
import { type FlowRunner, interleave, type Runner, type Samples } from "../rounds.ts";
import { sendCycle } from "../send.ts";

const ACTS = ["send", "roundTrip"] as const;
const TITLES: Readonly<Record<QueueAct, string>> = { send: "send", roundTrip: "send, lease, acknowledge" };

/** Messages a second, and what each costs the server: as a library, and over HTTP. */
export async function throughputFigures(bench: Bench, server: EmbeddedServer): Promise<readonly Figure[]> {
  const samples = await interleave(bench, (servers) => {
    const contestants = new Contestants(bench, server, servers);
    const ofAct = (act: QueueAct): Promise<Runner | FlowRunner>[] => [
      ...QUEUES.map((queue) => contestants.library(act, queue)),
      contestants.overHttp(act),
    ];
    return Promise.all([...ACTS.flatMap(ofAct), contestants.twoRelays()]);
  });
  return [...ratios(samples), ...speedFigures(samples, "PostgreSQL")];
}

/** Each on a database of its own: what one leaves there is not in the way of another. */
class Contestants {
  readonly #bench: Bench;
  readonly #server: EmbeddedServer;
  readonly #servers: AsyncDisposableStack;

  constructor(bench: Bench, server: EmbeddedServer, servers: AsyncDisposableStack) {
    this.#bench = bench;
    this.#server = server;
    this.#servers = servers;
  }

  async library(act: QueueAct, queue: QueueName): Promise<FlowRunner> {
    return this.#calling(nameOf(act, queue), act, [
      await this.#start(queue, await this.#server.newDatabase()),
    ]);
  }

  async twoRelays(): Promise<FlowRunner> {
    const database = await this.#server.newDatabase();
    const first = await this.#start("relay", database);
    const second = await this.#start("relay", database);
    return this.#calling(nameOf("roundTrip", "two relays"), "roundTrip", [first, second]);
  }

  async overHttp(act: QueueAct): Promise<Runner> {
    const relay = await startRelayOn(this.#bench, await this.#server.newDatabase());
    this.#servers.use(relay);
    const server = { port: relay.port, pid: this.#server.pid };
    return {
      name: nameOf(act, "relay over HTTP"),
      server,
      cycle: act === "send" ? sendCycle() : roundTrip(),
    };
  }

  async #start(queue: QueueName, database: string): Promise<ServerProcess> {
    return this.#servers.use(await startQueue(this.#bench, queue, database));
  }

  /** The processes share as many callers as there are connections over HTTP. */
  #calling(name: string, act: QueueAct, processes: readonly ServerProcess[]): FlowRunner {
    const callers = this.#bench.connections / processes.length;
    const run = async (afterMs: number) => {
      const order = { act, callers, end: { afterMs } };
      const results = await Promise.all(processes.map((each) => runCalls(each, order)));
      return {
        cycles: results.reduce((sum, { cycles }) => sum + cycles, 0),
        elapsedMs: Math.max(...results.map(({ elapsedMs }) => elapsedMs)),
      };
    };
    return { name, server: this.#server, open: async () => ({ run, [Symbol.dispose]: () => undefined }) };
  }
}

function nameOf(act: QueueAct, contestant: string): string {
  return `${TITLES[act]}: ${contestant}`;
}

function ratios(samples: readonly Samples[]): readonly Figure[] {
  const ratio = (act: QueueAct, over: string, under: string, bounds?: Pick<Figure, "aim">): Figure => {
    const of = (contestant: string): readonly number[] =>
      samples.find(({ name }) => name === nameOf(act, contestant))?.perSecond ?? [];
    return ratioOf(nameOf(act, `${over} / ${under}`), of(over), of(under), bounds);
  };
  return [
    ratio("roundTrip", "relay", "graphile-worker", { aim: { atLeast: 1 } }),
    ratio("roundTrip", "relay", "pg-boss"),
    ratio("send", "relay", "graphile-worker"),
    ratio("send", "relay", "pg-boss"),
    ratio("roundTrip", "two relays", "relay"),
    ratio("roundTrip", "relay over HTTP", "relay"),
    ratio("send", "relay over HTTP", "relay"),
  ];
}
