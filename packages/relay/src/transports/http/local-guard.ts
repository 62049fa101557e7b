import type { IncomingHttpHeaders } from "node:http";
import { RelayError } from "@a2a-relay/protocol";

/** Which hosts and pages may talk to the relay. */
export interface LocalGuardSettings {
  /** Host names under which the relay is known, beside loopback; undefined: any, because a key is needed. */
  readonly hosts: readonly string[] | undefined;
  /** Origins of pages that may call it, beside its own. */
  readonly allowedOrigins: readonly string[];
}

/** The headers that say where a request comes from. */
export type GuardedHeaders = Pick<
  IncomingHttpHeaders,
  "host" | "origin" | "sec-fetch-site" | "sec-fetch-mode"
>;

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Keeps local trust narrow: a page of another origin, or a foreign name that was made to point at this
 * machine, is not a user of this machine.
 */
export class LocalGuard {
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #allowedOrigins: ReadonlySet<string>;

  constructor(settings: LocalGuardSettings) {
    this.#hosts = settings.hosts === undefined ? undefined : new Set([...LOOPBACK_NAMES, ...settings.hosts]);
    this.#allowedOrigins = new Set(settings.allowedOrigins);
  }

  check({ host, origin, "sec-fetch-site": site, "sec-fetch-mode": mode }: GuardedHeaders): void {
    if (host === undefined || host === "") {
      throw new RelayError("invalid_argument", "the request has no Host header; send one");
    }
    if (this.#hosts !== undefined && !this.#hosts.has(hostName(host))) {
      throw new RelayError(
        "permission_denied",
        `the relay is not called "${host}"; set A2A_RELAY_PUBLIC_URL if it should be`,
      );
    }
    // An image or a script of a foreign page comes without an origin, but a browser says where it is from.
    const isForeign = site === "cross-site" || site === "same-site";
    if (origin === undefined && isForeign && mode !== "navigate" && this.#hosts !== undefined) {
      throw new RelayError("permission_denied", "pages of other sites may not call this relay");
    }
    if (origin === undefined || this.allowsOrigin(origin) || isOwnOrigin(origin, host)) return;
    throw new RelayError(
      "permission_denied",
      `pages of ${origin} may not call this relay; allow them with A2A_RELAY_ALLOWED_ORIGINS`,
    );
  }

  /** Whether the answer may be shown to the page. */
  allowsOrigin(origin: string): boolean {
    return this.#allowedOrigins.has(origin);
  }
}

/** Following a link from anywhere is harmless where a GET only reads; not where it takes something away. */
export function assertNoForeignLink({ "sec-fetch-site": site }: GuardedHeaders): void {
  if (site !== "cross-site" && site !== "same-site") return;
  throw new RelayError("permission_denied", "pages of other sites may not take mail with a link; use POST");
}

function isOwnOrigin(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, "");
}
