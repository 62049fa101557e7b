import type { IncomingHttpHeaders } from "node:http";
import { RelayError } from "@a2a-relay/protocol";

/** The hosts and pages that may call the relay. */
export interface LocalGuardSettings {
  /** The relay's host names besides loopback; undefined: any, because callers need a key. */
  readonly hosts: readonly string[] | undefined;
  /** Origins of pages that may call the relay, besides its own. */
  readonly allowedOrigins: readonly string[];
}

/** The headers that name the origin of a request. */
export type GuardedHeaders = Pick<
  IncomingHttpHeaders,
  "host" | "origin" | "sec-fetch-site" | "sec-fetch-mode"
>;

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/** Refuses pages of other origins, and foreign host names that resolve to this machine (DNS rebinding). */
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
    // A foreign page loads an image or a script without an Origin header, but with Sec-Fetch-Site.
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

  /** Whether a page of that origin may read answers. */
  allowsOrigin(origin: string): boolean {
    return this.#allowedOrigins.has(origin);
  }
}

/** For a GET that takes messages: a link on another site must not trigger it. */
export function assertNoForeignLink({ "sec-fetch-site": site }: GuardedHeaders): void {
  if (site !== "cross-site" && site !== "same-site") return;
  throw new RelayError(
    "permission_denied",
    "pages of other sites may not take messages with a link; use POST",
  );
}

function isOwnOrigin(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, "");
}
