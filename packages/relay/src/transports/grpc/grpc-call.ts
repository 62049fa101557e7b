import { A2aError, parseA2aVersion } from "@a2a-relay/protocol";
import type { Metadata } from "@grpc/grpc-js";
import type { Principal } from "../../core/access/principal.ts";
import type { A2aCall } from "../a2a/a2a-handler.ts";

/** What is needed of a call, whether it is answered once or goes on. */
export interface IncomingCall {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  once(event: "cancelled", listener: () => void): unknown;
}

/** A gRPC call as the handler sees it. */
export class GrpcA2aCall implements A2aCall {
  readonly principal: Principal;
  readonly version = "1.0";
  readonly extensions: readonly string[];
  readonly agentName: string | undefined;
  readonly #call: IncomingCall;
  readonly #stopping: AbortSignal;

  constructor(
    call: IncomingCall,
    known: {
      readonly principal: Principal;
      readonly agentName: string | undefined;
      readonly stopping: AbortSignal;
    },
  ) {
    assertVersion(headerOf(call, "a2a-version"));
    this.#call = call;
    this.#stopping = known.stopping;
    this.principal = known.principal;
    this.extensions = namedExtensions(call);
    this.agentName = known.agentName;
  }

  get idempotencyKey(): string | undefined {
    return headerOf(this.#call, "idempotency-key");
  }

  get lastEventId(): string | undefined {
    return headerOf(this.#call, "last-event-id");
  }

  /** Made when somebody waits: aborted when the caller has gone or the relay is stopping. */
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

/** The package of the service is that of 1.0; whoever says otherwise in the header is told. */
function assertVersion(said: string | undefined): void {
  const version = parseA2aVersion(said);
  if (version === undefined || version === "1.0") return;
  throw new A2aError("VersionNotSupported", `a2a-version: ${said} is not served over gRPC; 1.0 is`);
}
