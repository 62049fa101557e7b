import type { A2aMessage, A2aTask, AgentId, AgentInterface } from "@a2a-relay/protocol";

/** The remote agent's counterpart of one of our tasks. Ours is the truth; this says where to poll. */
export interface RemoteTask extends AgentInterface {
  readonly tenant: string;
  readonly taskId: string;
  readonly agentId: AgentId;
  /** Who asked the agent: their earlier conversation is shown to no other agent. */
  readonly requester: AgentId;
  readonly threadId: string;
  /** Its id at the remote agent; null if the agent answered with a message, or refused. */
  readonly remoteTaskId: string | null;
  readonly remoteContextId: string | null;
  /** An answer that is not recorded on the task yet. */
  readonly answer: RemoteAnswer | null;
  /** Of the remote status that was recorded last; null: none, or it is to be recorded again. */
  readonly statusDigest: string | null;
  /** When it changed last. */
  readonly changedAtMs: number;
  /** When it is polled next; null: never again. */
  readonly nextAtMs: number | null;
  /** Polls in a row that failed, and polls in a row that did not find it. */
  readonly failures: number;
  readonly misses: number;
  /** 0 is new. */
  readonly version: number;
}

/** A remote task that is to be polled, without its answer. */
export interface TimedRemoteTask extends Pick<RemoteTask, "tenant" | "taskId" | "failures"> {
  readonly origin: string;
  readonly nextAtMs: number;
}

/** A remote agent's answer to a message, in A2A 1.0. */
export type RemoteAnswer =
  | { readonly task: A2aTask }
  | { readonly message: A2aMessage }
  /** It refused the message, for this reason. */
  | { readonly refused: string };

export interface RemoteContextQuery {
  readonly tenant: string;
  readonly agentId: AgentId;
  /** Two requesters may use the same thread id; their contexts are separate. */
  readonly requester: AgentId;
  /** Before this time the requester's id belonged to another owner. */
  readonly sinceMs: number;
  readonly threadId: string;
  /** Of the interface: a context id is valid at one remote agent only. */
  readonly url: string;
}

export interface TimedRemoteTaskQuery {
  /** Of each tenant. */
  readonly limit: number;
  /** Origins by tenant to skip, because they have enough requests in flight. */
  readonly fullOrigins: ReadonlyMap<string, readonly string[]>;
}

/** `commit` changes them: `remoteTasks`. A row is removed with its task. */
export interface RemoteTaskStore {
  get(tenant: string, taskId: string): Promise<RemoteTask | undefined>;
  /** Those to be polled now or later; of every tenant the first ones by due time. */
  timed(query: TimedRemoteTaskQuery): Promise<readonly TimedRemoteTask[]>;
  /** The remote agent's context id for the requester's thread, from the newest task that has one. */
  contextId(query: RemoteContextQuery): Promise<string | undefined>;
}
