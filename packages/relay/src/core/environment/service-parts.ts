import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import type { Directory } from "../agents/directory.ts";
import type { ExternalAgents } from "../agents/external-agents.ts";
import type { Clock } from "./clock.ts";
import type { Identifiers } from "./identifiers.ts";
import type { Pace } from "./pace.ts";
import type { RelayStore } from "./relay-store.ts";
import type { Turns } from "./turns.ts";
import type { Waiters } from "./waiters.ts";

/** What every service is made of. */
export interface ServiceParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly externalAgents: ExternalAgents;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly guard: Guard;
  readonly gate: CapabilityGate;
  /** Those who spend the same capability, by the agent it is about. */
  readonly spenders: Turns;
  /** Of all who follow something and have much to catch up on. */
  readonly pace: Pace;
  readonly waiters: Waiters;
}
