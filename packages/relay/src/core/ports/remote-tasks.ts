import type { A2aMessage, A2aTask, A2aVersion, AgentId } from "@a2a-relay/protocol";

export const REMOTE_BINDINGS = ["JSONRPC", "HTTP+JSON"] as const;
export type RemoteBinding = (typeof REMOTE_BINDINGS)[number];

/** One way to reach a remote agent. */
export interface RemoteInterface {
  readonly url: string;
  readonly binding: RemoteBinding;
  readonly dialect: A2aVersion;
  /** The tenant field of A2A, which every request repeats; null where the card names none. */
  readonly a2aTenant: string | null;
}

/** The remote agent's counterpart of one of our tasks. Ours is the truth; this says where to poll. */
export interface RemoteTask extends RemoteInterface {
  readonly tenant: string;
  readonly taskId: string;
  readonly agentId: AgentId;
  /** Who asked the agent: their earlier conversation is shown to no other agent. */
  readonly requester: AgentId;
  readonly threadId: string;
  /** Its name there; null where it was answered with a message, or refused. */
  readonly remoteTaskId: string | null;
  readonly remoteContextId: string | null;
  /** What was answered and is not on record of our task yet. */
  readonly answer: RemoteAnswer | null;
  /** Of the status there that was put on record last; null: none, or it is to be put on record once more. */
  readonly statusDigest: string | null;
  /** When something about it was new the last time. */
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
  /** It does not take the message, for this reason. */
  | { readonly refused: string };

export interface RemoteContextQuery {
  readonly tenant: string;
  readonly agentId: AgentId;
  /** What one requester said to the agent is not for another one, though both may use the same name for a thread. */
  readonly requester: AgentId;
  /** Before this time the requester's id belonged to another owner. */
  readonly sinceMs: number;
  readonly threadId: string;
  /** Of the interface: what a context is called is known to one agent only. */
  readonly url: string;
}

export interface TimedRemoteTaskQuery {
  /** Of each tenant. */
  readonly limit: number;
  /** Origins by tenant that are passed over, because they have enough to do. */
  readonly fullOrigins: ReadonlyMap<string, readonly string[]>;
}

/** Changed through `commit` like everything else: `remoteTasks`. A row goes with its task. */
export interface RemoteTaskStore {
  remoteTask(tenant: string, taskId: string): Promise<RemoteTask | undefined>;
  /** Those to be polled now or later; of every tenant the first ones by due time. */
  timedRemoteTasks(query: TimedRemoteTaskQuery): Promise<readonly TimedRemoteTask[]>;
  /** What the agent there calls the requester's thread, as of the newest task that says. */
  remoteContextId(query: RemoteContextQuery): Promise<string | undefined>;
}
