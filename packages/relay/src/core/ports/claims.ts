/** Work that one process at a time may do: never a single push, but all pushes of an endpoint. */
export interface WorkUnit {
  readonly kind: "endpoint" | "task-push" | "remote-task" | "sweep";
  /** Unique within its kind, over all tenants. */
  readonly key: string;
}

/** A unit that a process has taken. */
export interface Claim extends WorkUnit {
  /** The process. */
  readonly owner: string;
  /** Grows each time that a unit gets another owner: it tells this claim from every later one. */
  readonly fence: number;
}

export interface ClaimRequest {
  readonly units: readonly WorkUnit[];
  readonly owner: string;
  readonly nowMs: number;
  /** From then on another owner may take the unit. */
  readonly untilMs: number;
}

/** `commit` checks them: `claims`. A store that only one process can open may forget them when it closes. */
export interface ClaimStore {
  /**
   * Takes those of the units that are free, expired at `nowMs`, or the owner's already: these keep their fence. Answers
   * what was taken.
   */
  claim(request: ClaimRequest): Promise<readonly Claim[]>;
  /** Extends claims that no other owner has taken, expired or not. Answers them. */
  renew(claims: readonly Claim[], untilMs: number): Promise<readonly Claim[]>;
  /** Frees the units. A claim that is lost is left to its owner. */
  release(claims: readonly Claim[]): Promise<void>;
}
