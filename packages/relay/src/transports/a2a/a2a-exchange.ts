import { A2aError, type A2aVersion, parseA2aVersion } from "@a2a-relay/protocol";
import type { Call, OpenCall } from "../http/route.ts";
import type { A2aCall } from "./a2a-handler.ts";

/** What an A2A request says of itself beside its body, the same over JSON-RPC and REST. */
export interface A2aHeaders {
  /** Undefined: not said. */
  readonly version: A2aVersion | undefined;
  readonly extensions: readonly string[];
}

/** Unknown versions are refused before anything is understood of the request. */
export function readHeaders(call: OpenCall): A2aHeaders {
  const said = call.header("a2a-version") ?? queryMember(call, "A2A-Version");
  const version = parseA2aVersion(said);
  if (version === "unknown") {
    throw new A2aError(
      "VersionNotSupported",
      `A2A-Version: ${said} is not served here; 1.0, 0.3, 0.2 and 0.1 are`,
    );
  }
  const named = call.header("a2a-extensions") ?? call.header("x-a2a-extensions") ?? "";
  const extensions = named
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
  return { version, extensions };
}

/** Reads the signal only when somebody waits, because it costs a listener. */
export class HttpA2aCall implements A2aCall {
  readonly version: A2aVersion;
  readonly extensions: readonly string[];
  readonly agentName: string | undefined;
  readonly #call: Call;

  constructor(
    call: Call,
    said: {
      readonly version: A2aVersion;
      readonly extensions: readonly string[];
      readonly agentName: string | undefined;
    },
  ) {
    this.#call = call;
    this.version = said.version;
    this.extensions = said.extensions;
    this.agentName = said.agentName;
  }

  get principal(): A2aCall["principal"] {
    return this.#call.principal;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get lastEventId(): string | undefined {
    return this.#call.lastEventId;
  }

  get idempotencyKey(): string | undefined {
    return this.#call.header("idempotency-key");
  }
}

function queryMember({ query }: OpenCall, name: string): string | undefined {
  const value = (query as Readonly<Record<string, unknown>>)[name];
  return typeof value === "string" ? value : undefined;
}
