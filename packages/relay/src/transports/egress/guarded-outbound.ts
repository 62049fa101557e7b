import { quote, RelayError } from "@a2a-relay/protocol";
import type { EgressPolicy } from "../../core/rules/egress-policy.ts";
import {
  type HttpClient,
  type OutboundAnswer,
  OutboundFailure,
  type OutboundRequest,
} from "./http-client.ts";
import { CheckedConnector, type Dial, dialTcp } from "./checked-connector.ts";
import { HttpExchange } from "./http-exchange.ts";
import { stopping } from "./failure.ts";
import { NameServers, type Resolve } from "./name-servers.ts";
import { OriginPools } from "./origin-pools.ts";

export interface GuardedOutboundParts {
  readonly policy: EgressPolicy;
  /** Default: the name servers of this machine. */
  readonly resolve?: Resolve;
  /** Default: TCP. */
  readonly dial?: Dial;
}

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~\da-z]+$/i;
/** Printable ASCII and tabs: no line ends, and nothing that servers parse in different ways. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

/** The client sets these itself, from the URL and the body: they decide where a request goes and where it ends. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * The guarded HTTP/1.1 client for every outbound request. It connects only to addresses that the policy allows, keeps
 * connections for a short time, and follows no redirects.
 */
export class GuardedOutbound implements HttpClient, AsyncDisposable {
  readonly #policy: EgressPolicy;
  readonly #connector: CheckedConnector;
  readonly #pools: OriginPools;
  #isDisposed = false;

  constructor({ policy, resolve = new NameServers().resolve, dial = dialTcp }: GuardedOutboundParts) {
    this.#policy = policy;
    this.#connector = new CheckedConnector(policy, resolve, dial);
    this.#pools = new OriginPools(this.#connector.connect);
  }

  async request(request: OutboundRequest): Promise<OutboundAnswer> {
    if (this.#isDisposed) throw stopping();
    const url = this.#checkedUrl(request.url);
    assertHeaders(request.headers);
    const exchange = new HttpExchange(url.host, request);
    if (!exchange.isOver) {
      const { method, headers, body = null } = request;
      this.#pools
        .of(url.origin)
        .dispatch({ path: `${url.pathname}${url.search}`, method, headers, body }, exchange);
    }
    return exchange.answer;
  }

  /** Checked again, because the operator may have changed the policy since the URL was registered. */
  #checkedUrl(text: string): URL {
    try {
      return this.#policy.checkUrl(text, "url");
    } catch (reason) {
      throw new OutboundFailure("blocked", RelayError.from(reason).message, { cause: reason });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    this.#connector[Symbol.dispose]();
    await this.#pools[Symbol.asyncDispose]();
  }
}

function assertHeaders(headers: OutboundRequest["headers"]): void {
  for (const [name, value] of Object.entries(headers)) {
    if (HEADER_NAME.test(name) && !OWN_HEADERS.has(name.toLowerCase()) && HEADER_VALUE.test(value)) continue;
    throw new OutboundFailure("protocol", `the header ${quote(name)} cannot be sent; nothing was sent`);
  }
}
