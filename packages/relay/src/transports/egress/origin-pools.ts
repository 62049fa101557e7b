import { type buildConnector, Pool } from "undici";

const SECOND_MS = 1_000;

/** Origins with kept connections; the least recently used one is closed first. */
const ORIGINS_MAX = 256;
/** Connections to one origin; further requests queue, within their timeout. */
const CONNECTIONS_OF_ORIGIN_MAX = 32;
/** The longest time that an idle connection is kept, also when the server offers more. */
const IDLE_MS_MAX = 4 * SECOND_MS;
/** After this age a connection takes no new requests, so that the relay follows changed DNS records. */
const CONNECTION_AGE_MS_MAX = 60 * SECOND_MS;
const ANSWER_HEADER_BYTES_MAX = 16 * 1024;

/** Connection pools by origin. The environment has no influence: no proxy, no other parser. */
export class OriginPools implements AsyncDisposable {
  readonly #connect: buildConnector.connector;
  readonly #pools = new Map<string, Pool>();
  /** Evicted pools with requests under way. */
  readonly #closing = new Set<Pool>();

  constructor(connect: buildConnector.connector) {
    this.#connect = connect;
  }

  of(origin: string): Pool {
    const pool = this.#pools.get(origin) ?? this.#open(origin);
    // A map keeps insertion order, so its first entry is the least recently used.
    this.#pools.delete(origin);
    this.#pools.set(origin, pool);
    for (const [oldest, idle] of this.#pools) {
      if (this.#pools.size <= ORIGINS_MAX) break;
      this.#pools.delete(oldest);
      this.#close(idle);
    }
    return pool;
  }

  #open(origin: string): Pool {
    return new Pool(origin, {
      connect: this.#connect,
      connections: CONNECTIONS_OF_ORIGIN_MAX,
      clientTtl: CONNECTION_AGE_MS_MAX,
      keepAliveTimeout: IDLE_MS_MAX,
      keepAliveMaxTimeout: IDLE_MS_MAX,
      maxHeaderSize: ANSWER_HEADER_BYTES_MAX,
      // The exchange limits the total time of a request.
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
      useMilo: false,
    });
  }

  /** Lets requests under way finish. */
  #close(pool: Pool): void {
    this.#closing.add(pool);
    const closed = (): void => void this.#closing.delete(pool);
    pool.close().then(closed, closed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#pools.values(), ...this.#closing];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
}
