import type { AgentId, PushMode, PushState } from "@a2a-relay/protocol";

/** Where and how the relay pushes to one agent. */
export interface PushEndpoint {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly mode: PushMode;
  readonly url: string;
  /** The push says only that a message is waiting. */
  readonly isNotice: boolean;
  /** A 2xx answer acknowledges the message, because the agent chose so. */
  readonly acknowledges: boolean;
  /** `whsec_…`, in plain text because signing needs it. */
  readonly secret: string;
  /** The secret before it, which also signs for a while. */
  readonly oldSecret: string | null;
  readonly oldSecretUntilMs: number | null;
  readonly state: "active" | "disabled";
  readonly reason: string | null;
  /** Failures in a row. */
  readonly failures: number;
  /** The circuit breaker is open: no attempt before this time. */
  readonly openUntilMs: number | null;
  /** Deliveries up to this position of the mailbox have a push. */
  readonly afterPosition: number;
  /** 0 is new. */
  readonly version: number;
}

/** Whose endpoint it is. */
export type EndpointKey = Pick<PushEndpoint, "tenant" | "agentId">;

export interface EndpointPage {
  readonly state: PushEndpoint["state"];
  readonly after: EndpointKey | undefined;
  readonly limit: number;
}

/** The push of one message. */
export interface PushRecord {
  readonly tenant: string;
  readonly messageId: string;
  readonly agentId: AgentId;
  readonly state: PushState;
  readonly reason: string | null;
  /** How many attempts there were in all; the number of the last one. */
  readonly attempts: number;
  /** How many of them belong to earlier rounds: a replay or a requeue begins a new one. */
  readonly attemptsBefore: number;
  readonly createdAtMs: number;
  /** Its position in the mailbox: orders pushes that are due at the same time. */
  readonly position: number;
  /** While pending: the time of the next attempt. */
  readonly nextAtMs: number | null;
  /** Since when its outcome is unknown: set before each request. */
  readonly sentAtMs: number | null;
  /** 0 is new. */
  readonly version: number;
}

export interface PushAttempt {
  readonly tenant: string;
  readonly messageId: string;
  readonly attempt: number;
  readonly atMs: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  /** The beginning of the answer. */
  readonly answer: string | null;
}

export interface PushFilter {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly state: PushState | undefined;
  readonly limit: number;
}

/** `commit` changes them: `pushEndpoints`, `pushProgress`. */
export interface EndpointStore {
  get(tenant: string, agentId: AgentId): Promise<PushEndpoint | undefined>;
  /** Active endpoints of all tenants, or disabled ones with pending pushes; in a fixed order, after `after`. */
  list(page: EndpointPage): Promise<readonly PushEndpoint[]>;
}

/** `commit` changes them: `pushes`, `pushAttempts`. */
export interface PushStore {
  /** As many as ids, in their order. */
  get(tenant: string, messageIds: readonly string[]): Promise<readonly (PushRecord | undefined)[]>;
  /** The latest, oldest first. Of one push `LIMITS.pushAttemptsKept` are kept. */
  attempts(tenant: string, messageId: string, limit: number): Promise<readonly PushAttempt[]>;
  /** Pending pushes of one endpoint whose time has come, the longest due first, then by position. */
  due(tenant: string, agentId: AgentId, nowMs: number, limit: number): Promise<readonly PushRecord[]>;
  /** Newest first. */
  list(filter: PushFilter): Promise<readonly PushRecord[]>;
  countPending(tenant: string, agentId: AgentId): Promise<number>;
}
