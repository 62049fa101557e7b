import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { quote } from "@a2a-relay/protocol";
import type { buildConnector } from "undici";
import type { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { OutboundFailure } from "../../core/ports/outbound-http.ts";
import { blocked, connectFailure, noAddress, stopping } from "./failure.ts";
import type { Resolve } from "./name-servers.ts";

/** Where a connection goes: one of these addresses, all of them checked. */
export interface DialTarget {
  readonly name: string;
  readonly addresses: readonly LookupAddress[];
  readonly port: number;
}
export type Dial = (destination: DialTarget) => Socket;

/**
 * From the look-up of the name to a connection that can be written to. No more than that is left of a request that was
 * given up.
 */
const CONNECT_MS_MAX = 10_000;
/** Of a name with more addresses the first ones are tried. */
const ADDRESSES_MAX = 8;

/** Node tries the addresses in turn; the name is there to be asked for, and is answered without asking anybody. */
export const dialTcp: Dial = ({ name, addresses, port }) =>
  connect({
    host: name,
    port,
    noDelay: true,
    autoSelectFamily: true,
    lookup: (_name, _options, answer) => answer(null, [...addresses]),
  });

/** Opens connections for undici: the name is resolved once, and the connection goes to what was checked. */
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
    const destination = { name: hostname, addresses, port: port === "" ? usualPort : Number(port) };
    let socket = this.#track(this.#dial(destination));
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

  /** Those of the host that may be called. A literal address has no name to resolve and is checked all the same. */
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
    // Whoever uses the socket hears of its errors too; without a listener one that comes late ends the process.
    socket.on("error", () => {});
    return socket;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const opening of this.#opening) opening.abort(stopping());
    for (const socket of this.#sockets) socket.destroy(stopping());
  }
}

/** Certificates are checked whatever the environment of the process says. */
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

/** Not every way to resolve a name can be stopped; then it goes on without anybody who waits for it. */
async function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  return Promise.race([result, aborted]).finally(() => signal.removeEventListener("abort", abort));
}
