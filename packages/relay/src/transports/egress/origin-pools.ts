import { type buildConnector, Pool } from "undici";

const SECOND_MS = 1_000;

/** Origins whose connections are kept for the next request; the one that was not used for longest gives way. */
const ORIGINS_MAX = 256;
/** Connections to one origin; further requests wait, within their time. */
const CONNECTIONS_OF_ORIGIN_MAX = 32;
/** An unused connection is closed after so long, whatever the other side offers. */
const IDLE_MS_MAX = 4 * SECOND_MS;
/** A connection takes no new requests after so long, so that a name that moves is followed. */
const CONNECTION_AGE_MS_MAX = 60 * SECOND_MS;
const ANSWER_HEADER_BYTES_MAX = 16 * 1024;

/** Connections by origin. Nothing is taken from the environment: no proxy, no other parser. */
export class OriginPools implements AsyncDisposable {
  readonly #connect: buildConnector.connector;
  readonly #pools = new Map<string, Pool>();
  /** Those that gave way and still have requests under way. */
  readonly #leaving = new Set<Pool>();

  constructor(connect: buildConnector.connector) {
    this.#connect = connect;
  }

  of(origin: string): Pool {
    const pool = this.#pools.get(origin) ?? this.#open(origin);
    // A map keeps the order of insertion, so that its first is the one that was not used for longest.
    this.#pools.delete(origin);
    this.#pools.set(origin, pool);
    for (const [oldest, idle] of this.#pools) {
      if (this.#pools.size <= ORIGINS_MAX) break;
      this.#pools.delete(oldest);
      this.#leave(idle);
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
      // The time of a request is counted as a whole, by its exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
      useMilo: false,
    });
  }

  /** Lets requests under way finish. */
  #leave(pool: Pool): void {
    this.#leaving.add(pool);
    const gone = (): void => void this.#leaving.delete(pool);
    pool.close().then(gone, gone);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#pools.values(), ...this.#leaving];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
}
