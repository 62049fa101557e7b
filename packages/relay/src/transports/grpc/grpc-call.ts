import { A2aError, parseA2aVersion } from "@a2a-relay/protocol";
import type { Metadata } from "@grpc/grpc-js";
import type { Principal } from "../../core/access/principal.ts";
import type { A2aCall } from "../a2a/a2a-handler.ts";

/** The part of a gRPC call that unary and streaming calls share. */
export interface IncomingCall {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  once(event: "cancelled", listener: () => void): unknown;
}

/** A gRPC call as the A2A handler sees it. */
export class GrpcA2aCall implements A2aCall {
  readonly principal: Principal;
  readonly version = "1.0";
  readonly extensions: readonly string[];
  readonly agentName: string | undefined;
  readonly #call: IncomingCall;
  readonly #stopping: AbortSignal;

  constructor(
    call: IncomingCall,
    context: {
      readonly principal: Principal;
      readonly agentName: string | undefined;
      readonly stopping: AbortSignal;
    },
  ) {
    assertVersion(headerOf(call, "a2a-version"));
    this.#call = call;
    this.#stopping = context.stopping;
    this.principal = context.principal;
    this.extensions = namedExtensions(call);
    this.agentName = context.agentName;
  }

  get idempotencyKey(): string | undefined {
    return headerOf(this.#call, "idempotency-key");
  }

  get lastEventId(): string | undefined {
    return headerOf(this.#call, "last-event-id");
  }

  /** Aborted when the caller cancels or the relay stops. */
  get signal(): AbortSignal {
    const gone = new AbortController();
    this.#call.once("cancelled", () => gone.abort());
    if (this.#call.cancelled) gone.abort();
    return AbortSignal.any([gone.signal, this.#stopping]);
  }
}

export function headerOf(call: IncomingCall, name: string): string | undefined {
  const values = call.metadata.get(name).map(String);
  return values.length === 0 ? undefined : values.join(", ");
}

export function namedExtensions(call: IncomingCall): readonly string[] {
  return (headerOf(call, "a2a-extensions") ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
}

/** The service's package is that of 1.0, so a header that names another version is refused. */
function assertVersion(said: string | undefined): void {
  const version = parseA2aVersion(said);
  if (version === undefined || version === "1.0") return;
  throw new A2aError("VersionNotSupported", `a2a-version: ${said} is not served over gRPC; 1.0 is`);
}
