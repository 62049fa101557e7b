import { startBareHttp, startRelay } from "../contestants/contestants.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import type { Figure } from "../figure.ts";
import { type Answer, assertOk, type Connection, jsonOf, openConnections } from "../load/connection.ts";
import { getRequest, postRequest } from "../load/http-request.ts";
import { agentId } from "../load/messages.ts";
import type { InboxItem } from "../load/mailbox-item.ts";
import type { Bench } from "./bench.ts";
import {
  arrivalRound,
  echoRound,
  measuredRate,
  type OnMessages,
  type SendRate,
  percentileFigures,
  warmUpRate,
} from "./paced-sends.ts";
import { roundsOverStarts } from "./starts.ts";

const READERS = 20;
const WAIT_MS = 30_000;
const LEASE_MS = 60_000;

/** From the moment a send is written to the moment the reader who waits for it holds the answer. */
export async function measureLatency(bench: Bench): Promise<readonly Figure[]> {
  const echoes: number[][] = [];
  const reads: number[][] = [];
  const leases: number[][] = [];
  await roundsOverStarts(bench, async (servers) => {
    const bare = servers.use(await startBareHttp(bench));
    const relay = servers.use(await startRelay(bench));
    await readersRound(relay, warmUpRate(bench), ReadingReader);
    await readersRound(relay, warmUpRate(bench), LeasingReader);
    await echoRound(bare, warmUpRate(bench));
    return async () => {
      echoes.push(await echoRound(bare, measuredRate(bench)));
      reads.push(await readersRound(relay, measuredRate(bench), ReadingReader));
      leases.push(await readersRound(relay, measuredRate(bench), LeasingReader));
    };
  });
  return [
    ...percentileFigures("send to waiting reader", reads),
    ...percentileFigures("send to waiting worker (lease)", leases),
    ...percentileFigures("bare node:http echo, its round trip alone", echoes),
  ];
}

type ReaderKind = new (connection: Connection, agent: number) => Reader;

async function readersRound(server: ServerProcess, rate: SendRate, Kind: ReaderKind): Promise<number[]> {
  using connections = await openConnections(server.port, READERS);
  const readers = connections.map((connection, agent) => new Kind(connection, agent));
  for (const reader of readers) await reader.skipOldMessages();
  let reading: readonly Promise<void>[] = [];
  return await arrivalRound(server, rate, {
    agents: readers.map((_, agent) => agent),
    begin: (onMessages) => {
      reading = readers.map((reader) => reader.run(onMessages));
    },
    end: async () => {
      for (const reader of readers) reader.stop();
      await Promise.all(reading);
    },
  });
}

/** Waits for messages, takes them, waits again. */
abstract class Reader {
  protected readonly connection: Connection;
  protected readonly agent: number;
  #stopped = false;

  constructor(connection: Connection, agent: number) {
    this.connection = connection;
    this.agent = agent;
  }

  /** What earlier rounds left behind is not waited for. */
  abstract skipOldMessages(): Promise<void>;
  protected abstract wait(): Promise<Answer>;
  protected abstract settle(items: readonly InboxItem[], answer: unknown): Promise<void>;

  async run(onMessages: OnMessages): Promise<void> {
    while (!this.#stopped) {
      const answer = await this.wait().catch(() => undefined);
      const at = performance.now();
      if (answer === undefined) return;
      const json = jsonOf(answer) as { readonly messages: readonly InboxItem[] };
      onMessages(json.messages, at);
      await this.settle(json.messages, json).catch(() => undefined);
    }
  }

  /** Hangs up; whatever was waited for will not come. */
  stop(): void {
    this.#stopped = true;
    this.connection.hangUp();
  }
}

class ReadingReader extends Reader {
  #cursor = "0";

  async skipOldMessages(): Promise<void> {
    for (;;) {
      const request = getRequest(`/mailbox/${agentId(this.agent)}?since=${this.#cursor}&limit=500&peek=true`);
      const answer = jsonOf(await this.connection.request(request));
      const { messages, cursor } = answer as {
        readonly messages: readonly InboxItem[];
        readonly cursor: string;
      };
      if (messages.length === 0) return;
      this.#cursor = cursor;
    }
  }

  protected wait(): Promise<Answer> {
    const query = `since=${this.#cursor}&wait_ms=${WAIT_MS}`;
    return this.connection.request(getRequest(`/mailbox/${agentId(this.agent)}?${query}`));
  }

  protected async settle(_items: readonly InboxItem[], answer: unknown): Promise<void> {
    this.#cursor = (answer as { readonly cursor: string }).cursor;
  }
}

class LeasingReader extends Reader {
  async skipOldMessages(): Promise<void> {
    for (;;) {
      const answer = jsonOf(await this.connection.request(this.#lease(100, 0)));
      const { messages } = answer as { readonly messages: readonly InboxItem[] };
      if (messages.length === 0) return;
      await this.settle(messages);
    }
  }

  protected wait(): Promise<Answer> {
    return this.connection.request(this.#lease(1, WAIT_MS));
  }

  protected async settle(items: readonly InboxItem[]): Promise<void> {
    if (items.length === 0) return;
    const leases = items.map((item) => ({ message_id: item.message_id, lease_id: item.lease?.id }));
    assertOk(await this.connection.request(postRequest(`/mailbox/${agentId(this.agent)}/ack`, { leases })));
  }

  #lease(max: number, waitMs: number): Buffer {
    const body = { max, lease_ms: LEASE_MS, wait_ms: waitMs };
    return postRequest(`/mailbox/${agentId(this.agent)}/lease`, body);
  }
}
