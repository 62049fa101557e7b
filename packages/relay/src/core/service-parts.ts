import type { CapabilityGate } from "./access/capability-gate.ts";
import type { Guard } from "./access/guard.ts";
import type { Directory } from "./agents/directory.ts";
import type { RemoteAgents } from "./registration/remote-agents.ts";
import type { Clock } from "./ports/clock.ts";
import type { Identifiers } from "./ports/ids.ts";
import type { Throttle } from "./mechanisms/throttle.ts";
import type { RelayStore } from "./ports/relay-store.ts";
import type { KeyedMutex } from "./mechanisms/keyed-mutex.ts";
import type { WaitQuota } from "./access/wait-quota.ts";

/** What every service is made of. */
export interface ServiceParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly remoteAgents: RemoteAgents;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly guard: Guard;
  readonly gate: CapabilityGate;
  /** Those who spend the same capability, by the agent it is about. */
  readonly capabilityMutex: KeyedMutex;
  /** Of all who follow something and have much to catch up on. */
  readonly throttle: Throttle;
  readonly waitQuota: WaitQuota;
}
