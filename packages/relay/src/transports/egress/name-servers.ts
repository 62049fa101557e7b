import type { LookupAddress } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";

/** All addresses of a name. After the signal aborts, the result is not used. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

export interface NameServersOptions {
  /** As `address:port`; default: those of this machine. */
  readonly servers?: readonly string[];
  readonly tryMs?: number;
}

/** Two tries take about six seconds, because the second one waits longer. */
const TRY_MS = 2_000;
const TRIES = 2;

/** Names without a dot, and those under `localhost` and `internal`: no stranger can have a name server for them. */
const OWN_NAME = /^[^.]+$|\.(?:localhost|internal)$/i;

/**
 * Asks the name servers of this machine directly. The operating system's resolver has a few threads for the whole
 * process and cannot be stopped, so a few names with a silent name server would delay all others. Only the machine's
 * own names, which may be in the hosts file, use it.
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
    // One resolver per name: it can be cancelled alone, and uses the current name servers.
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

/** One of the two queries may fail: some name servers do not know IPv6. */
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

/** The name exists, but has no address of this kind. */
function isNoData(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && reason.code === "ENODATA";
}
