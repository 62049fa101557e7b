import { RelayError } from "@a2a-relay/protocol";
import type { Authenticator } from "../../core/access/authenticator.ts";
import type { Guard } from "../../core/access/guard.ts";
import type { Principal } from "../../core/access/principal.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";

/** What a wire reads of a call before it knows the caller. */
export interface ArrivingCall {
  /** As an Authorization header has it. */
  readonly credential: string | undefined;
  /** Undefined: the caller's own. */
  readonly tenant: string | undefined;
  /** The wire's name in the journal. */
  readonly transport: "grpc" | "http" | "websocket";
}

export interface GatewayParts {
  readonly authenticator: Authenticator;
  readonly tenants: Pick<TenantService, "enter">;
  readonly guard: Pick<Guard, "assertStillValid">;
}

/** Decides which calls enter the relay, on every wire. Wires only read the call and write the refusal. */
export class Gateway {
  readonly #parts: GatewayParts;
  readonly #stopping = new AbortController();

  constructor(parts: GatewayParts) {
    this.#parts = parts;
  }

  /** Aborted when the relay stops; calls that wait are answered at once. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** For calls of unknown callers. `admit` and `readmit` include it. */
  assertRunning(): void {
    if (!this.#stopping.signal.aborted) return;
    throw new RelayError("unavailable", "the relay is stopping; try again in a moment");
  }

  /** The caller, in the tenant that it names. */
  async admit({ credential, tenant, transport }: ArrivingCall): Promise<Principal> {
    this.assertRunning();
    const principal = await this.#parts.authenticator.authenticate(credential, transport);
    return tenant === undefined ? principal : this.#parts.tenants.enter(principal, tenant);
  }

  /** For calls that need no key, except to name a tenant. Undefined: a caller without a key, where keys are needed. */
  async admitAnyone(call: ArrivingCall): Promise<Principal | undefined> {
    const hasKey = call.credential !== undefined && call.credential !== "";
    if (hasKey || call.tenant !== undefined) return this.admit(call);
    this.assertRunning();
    return this.#parts.authenticator.everybody;
  }

  /** Before every request of a connection that was admitted earlier: its key may have ended since. */
  async readmit(principal: Principal): Promise<void> {
    this.assertRunning();
    await this.#parts.guard.assertStillValid(principal);
  }
}
