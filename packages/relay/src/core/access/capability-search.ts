import { formatInstant } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../ports/access.ts";
import { type ScopedRequest, scopeRefusal } from "./capability-scope.ts";
import type { Fault, Standing } from "./capability-validity.ts";

/** A capability that admits the act, and the one it was delegated from. */
export interface Found {
  readonly capability: CapabilityRecord;
  readonly parent: CapabilityRecord | undefined;
}

export type Search = { readonly found: Found } | { readonly found: undefined; readonly why: Shortfall };

export interface Shortfall {
  /** A scope that does not admit the act; undefined when there is no live capability at all. */
  readonly scope?: string;
  /** The nearest that there is, which does not count. */
  readonly nearest?: Nearest;
}

export interface Nearest {
  readonly capability: CapabilityRecord;
  readonly fault: Fault;
}

/** One that is not counted is taken before one that is. */
export function chosenOf(
  held: readonly CapabilityRecord[],
  standings: readonly Standing[],
  request: ScopedRequest | undefined,
): Search {
  const why: { scope?: string; nearest?: Nearest } = {};
  let limited: Found | undefined;
  for (const [index, capability] of held.entries()) {
    const standing = standings[index];
    if (standing === undefined) continue;
    if (standing.fault !== undefined) {
      why.nearest = { capability, fault: standing.fault };
      continue;
    }
    const refusal = request === undefined ? undefined : scopeRefusal(capability.scope, request);
    if (refusal !== undefined) {
      why.scope ??= refusal;
      continue;
    }
    const found = { capability, parent: standing.parent };
    if (useOf(found).length === 0) return { found };
    limited ??= found;
  }
  return limited === undefined ? { found: undefined, why } : { found: limited };
}

const NO_USES: readonly CapabilityRecord[] = [];

/** One use more of all that is counted: a delegated capability takes from what its parent has left, too. */
export function useOf({ capability, parent }: Found): readonly CapabilityRecord[] {
  if (capability.scope.max_uses == null && parent === undefined) return NO_USES;
  return [capability, ...(parent === undefined ? [] : [parent])]
    .filter(({ scope }) => scope.max_uses != null)
    .map((each) => ({ ...each, used: each.used + 1 }));
}

export function describeFault({ capability, fault }: Nearest): string {
  const { id, expiresAtMs, used, scope } = capability;
  if (fault === "expired") return `${id} expired at ${formatInstant(expiresAtMs ?? 0)}`;
  if (fault === "spent") return `${id} is spent: ${used} of ${String(scope.max_uses)} uses`;
  return `${id} is ${fault}`;
}
