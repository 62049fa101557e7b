import type { AgentId, PushState } from "@a2a-relay/protocol";
import type { EndpointKey, PushAttempt, PushEndpoint, PushRecord } from "./push-record.ts";

export interface PushFilter {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly state: PushState | undefined;
  readonly limit: number;
}

/** Changed through `commit` like everything else: `pushEndpoints`, `pushProgress`, `pushes`, `pushAttempts`. */
export interface PushStore {
  pushEndpoint(tenant: string, agentId: AgentId): Promise<PushEndpoint | undefined>;
  /** Active endpoints of all tenants, in a fixed order, behind `after`. */
  activePushEndpoints(after: EndpointKey | undefined, limit: number): Promise<readonly PushEndpoint[]>;
  /** Endpoints that are called no more and have pushes that wait, of all tenants, behind `after`. */
  leftPushEndpoints(after: EndpointKey | undefined, limit: number): Promise<readonly PushEndpoint[]>;
  push(tenant: string, messageId: string): Promise<PushRecord | undefined>;
  /** The latest, oldest first. Of one push `LIMITS.pushAttemptsKept` are kept. */
  pushAttempts(tenant: string, messageId: string, limit: number): Promise<readonly PushAttempt[]>;
  /** Pending pushes of one endpoint whose time has come, the longest due first, then by position. */
  duePushes(tenant: string, agentId: AgentId, nowMs: number, limit: number): Promise<readonly PushRecord[]>;
  /** Newest first. */
  pushesOf(filter: PushFilter): Promise<readonly PushRecord[]>;
  countPendingPushes(tenant: string, agentId: AgentId): Promise<number>;
}
