import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { quote } from "@a2a-relay/protocol";
import type { buildConnector } from "undici";
import type { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { OutboundFailure } from "./http-client.ts";
import { blocked, connectFailure, noAddress, stopping } from "./failure.ts";
import type { Resolve } from "./name-servers.ts";

/** A connection goes to one of these addresses, which are all checked. */
export interface DialTarget {
  readonly name: string;
  readonly addresses: readonly LookupAddress[];
  readonly port: number;
}
export type Dial = (target: DialTarget) => Socket;

/** From resolving the name to a usable connection. An abandoned request may hold a connection for so long. */
const CONNECT_MS_MAX = 10_000;
/** The first addresses of a name are tried. */
const ADDRESSES_MAX = 8;

/** Node tries one address after the other. `lookup` returns the checked addresses and queries no name server. */
export const dialTcp: Dial = ({ name, addresses, port }) =>
  connect({
    host: name,
    port,
    noDelay: true,
    autoSelectFamily: true,
    lookup: (_name, _options, answer) => answer(null, [...addresses]),
  });

/** Opens connections for undici. It resolves a name once and connects only to the addresses that it checked. */
export class CheckedConnector implements Disposable {
  readonly #policy: EgressPolicy;
  readonly #resolve: Resolve;
  readonly #dial: Dial;
  readonly #opening = new Set<AbortController>();
  readonly #sockets = new Set<Socket>();
  #isDisposed = false;

  constructor(policy: EgressPolicy, resolve: Resolve, dial: Dial) {
    this.#policy = policy;
    this.#resolve = resolve;
    this.#dial = dial;
  }

  readonly connect: buildConnector.connector = (to, report) => {
    void this.#open(to).then(
      (socket) => report(null, socket),
      (reason: unknown) => report(connectFailure(to.hostname, reason), null),
    );
  };

  async #open(to: buildConnector.Options): Promise<Socket> {
    const opening = new AbortController();
    const late = new OutboundFailure(
      "timeout",
      `no connection to ${quote(to.hostname)} within ${CONNECT_MS_MAX} ms`,
    );
    const timer = setTimeout(() => opening.abort(late), CONNECT_MS_MAX);
    this.#opening.add(opening);
    try {
      return await this.#connected(to, opening.signal);
    } catch (reason) {
      throw opening.signal.aborted ? opening.signal.reason : reason;
    } finally {
      clearTimeout(timer);
      this.#opening.delete(opening);
    }
  }

  async #connected(to: buildConnector.Options, signal: AbortSignal): Promise<Socket> {
    const { hostname, port, protocol } = to;
    const isSecure = protocol === "https:";
    const addresses = await this.#addressesOf(hostname, signal);
    if (this.#isDisposed) throw stopping();
    const usualPort = isSecure ? 443 : 80;
    const target = { name: hostname, addresses, port: port === "" ? usualPort : Number(port) };
    let socket = this.#track(this.#dial(target));
    try {
      await once(socket, "connect", { signal });
      if (!isSecure) return socket;
      socket = this.#track(secure(socket, hostname));
      await once(socket, "secureConnect", { signal });
      return socket;
    } catch (reason) {
      socket.destroy();
      throw reason;
    }
  }

  /** The allowed addresses of the host. A literal address is checked too. */
  async #addressesOf(hostname: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    const family = isIP(hostname);
    const found =
      family === 0
        ? await unlessAborted(this.#resolve(hostname, signal), signal)
        : [{ address: hostname, family }];
    if (found.length === 0) throw noAddress(hostname);
    const allowed = found.filter(({ address }) => this.#policy.allows(address));
    if (allowed.length === 0) throw blocked(hostname);
    return allowed.slice(0, ADDRESSES_MAX);
  }

  #track(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    // A late error without a listener would end the process; undici has its own listener.
    socket.on("error", () => {});
    return socket;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const opening of this.#opening) opening.abort(stopping());
    for (const socket of this.#sockets) socket.destroy(stopping());
  }
}

/** Checks certificates also under NODE_TLS_REJECT_UNAUTHORIZED=0. */
function secure(socket: Socket, hostname: string): Socket {
  const servername = isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, "") } : {};
  return connectTls({
    socket,
    host: hostname,
    ...servername,
    ALPNProtocols: ["http/1.1"],
    rejectUnauthorized: true,
  });
}

/** Not every resolver can be stopped; its late result is ignored. */
async function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  return Promise.race([result, aborted]).finally(() => signal.removeEventListener("abort", abort));
}
