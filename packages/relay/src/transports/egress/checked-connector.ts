import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { quote } from "@a2a-relay/protocol";
import type { buildConnector } from "undici";
import type { EgressPolicy } from "../../core/environment/egress-policy.ts";
import { OutboundFailure } from "../../core/environment/outbound.ts";
import { blocked, connectFailure, noAddress, stopping } from "./failure.ts";

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<readonly LookupAddress[]>;

/** Where a connection goes: one of these addresses, all of them checked. */
export interface Destination {
  readonly name: string;
  readonly addresses: readonly LookupAddress[];
  readonly port: number;
}
export type Dial = (destination: Destination) => Socket;

/** Until there is a connection that can be written to. No more than that is left of a request that was given up. */
const CONNECT_MS_MAX = 10_000;
/** Of a name with more addresses the first ones are tried. */
const ADDRESSES_MAX = 8;

/** As the operating system does, hosts file and all. */
export const resolveBySystem: Resolve = (name) => lookup(name, { all: true, order: "verbatim" });

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

  async #open({ hostname, port, protocol }: buildConnector.Options): Promise<Socket> {
    const isSecure = protocol === "https:";
    const addresses = await this.#addressesOf(hostname);
    if (this.#isDisposed) throw stopping();
    const usualPort = isSecure ? 443 : 80;
    const destination = { name: hostname, addresses, port: port === "" ? usualPort : Number(port) };
    let socket = this.#track(this.#dial(destination));
    const late = new OutboundFailure(
      "timeout",
      `no connection to ${quote(hostname)} within ${CONNECT_MS_MAX} ms`,
    );
    const timer = setTimeout(() => socket.destroy(late), CONNECT_MS_MAX);
    try {
      await once(socket, "connect");
      if (!isSecure) return socket;
      socket = this.#track(secure(socket, hostname));
      await once(socket, "secureConnect");
      return socket;
    } catch (reason) {
      socket.destroy();
      throw reason;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Those of the host that may be called. A literal address has no name to resolve and is checked all the same. */
  async #addressesOf(hostname: string): Promise<readonly LookupAddress[]> {
    const family = isIP(hostname);
    const found = family === 0 ? await this.#resolve(hostname) : [{ address: hostname, family }];
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
