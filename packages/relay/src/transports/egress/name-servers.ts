import type { LookupAddress } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";

/** All addresses of a name. Once the signal is aborted nobody waits for them. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

export interface NameServersOptions {
  /** By address and port; those that the machine is set up with unless others are given. */
  readonly servers?: readonly string[];
  readonly tryMs?: number;
}

/** A name server that does not answer is asked twice, and given up after about six seconds. */
const TRY_MS = 2_000;
const TRIES = 2;

/**
 * Names without a dot and those under `localhost` and `internal` are this machine's or this network's own: no stranger
 * can have a name server for them.
 */
const OWN_NAME = /^[^.]+$|\.(?:localhost|internal)$/i;

/**
 * Asks the name servers of this machine, over sockets of its own. The operating system's way has a few threads for the
 * whole process and cannot be stopped: a few names whose name server is silent would hold up all others. So it is used
 * for our own names alone, which may be in the hosts file.
 */
export class NameServers {
  readonly #servers: readonly string[] | undefined;
  readonly #tryMs: number;

  constructor({ servers, tryMs = TRY_MS }: NameServersOptions = {}) {
    this.#servers = servers;
    this.#tryMs = tryMs;
  }

  readonly resolve: Resolve = async (name, signal) => {
    if (OWN_NAME.test(name.replace(/\.$/, ""))) return lookup(name, { all: true, order: "verbatim" });
    // One for each name, so that it is stopped alone, and follows when the machine gets other name servers.
    const resolver = new Resolver({ timeout: this.#tryMs, tries: TRIES });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      return addressesIn(answers);
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}

/** One of the two questions may fail: there are name servers that know nothing of IPv6. */
function addressesIn(
  answers: readonly [v4: PromiseSettledResult<string[]>, v6: PromiseSettledResult<string[]>],
): readonly LookupAddress[] {
  const found = answers.flatMap((answer, index) =>
    answer.status === "fulfilled"
      ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 }))
      : [],
  );
  const failure = answers.find((answer) => answer.status === "rejected" && !isNoData(answer.reason));
  if (found.length === 0 && failure?.status === "rejected") throw failure.reason;
  return found;
}

/** The name is there, and has no address of this kind. */
function isNoData(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && reason.code === "ENODATA";
}
