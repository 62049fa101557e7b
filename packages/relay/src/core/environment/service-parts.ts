import type { Directory } from "../agents/directory.ts";
import type { Clock } from "./clock.ts";
import type { Identifiers } from "./identifiers.ts";
import type { RelayStore } from "./relay-store.ts";

/** What every service is made of. */
export interface ServiceParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly ids: Identifiers;
}
