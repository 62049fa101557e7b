import type { A2aVersion, AgentId } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";

/** Who asks over A2A, and how. */
export interface A2aCaller {
  readonly principal: Principal;
  /** Whose endpoint was called; undefined: the relay's own, where the task itself says whose it is. */
  readonly agentId: AgentId | undefined;
  readonly version: A2aVersion;
  /** Those that the caller says it knows. */
  readonly extensions: readonly string[];
  readonly idempotencyKey: string | undefined;
}
