import type { A2aMessage, A2aTask, A2aVersion, AgentId } from "@a2a-relay/protocol";

export const REMOTE_BINDINGS = ["JSONRPC", "HTTP+JSON"] as const;
export type RemoteBinding = (typeof REMOTE_BINDINGS)[number];

/** One way to reach an agent elsewhere. */
export interface RemoteInterface {
  readonly url: string;
  readonly binding: RemoteBinding;
  readonly dialect: A2aVersion;
  /** The tenant field of A2A, which every request repeats; null where the card names none. */
  readonly a2aTenant: string | null;
}

/** A task of ours as an agent elsewhere has it. Ours is the truth, and this says where to look what became of it. */
export interface RemoteTask extends RemoteInterface {
  readonly tenant: string;
  readonly taskId: string;
  readonly agentId: AgentId;
  /** Who wrote to the agent: what the two said to each other before is for nobody else. */
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
  /** When it is looked at next; null: there is nothing more to see. */
  readonly nextAtMs: number | null;
  /** Looks in a row that failed, and of those without a failure, that did not find it. */
  readonly failures: number;
  readonly misses: number;
  /** 0 is new. */
  readonly version: number;
}

/** One that is looked at some time, without what was answered. */
export interface TimedRemoteTask extends Pick<RemoteTask, "tenant" | "taskId" | "failures"> {
  readonly origin: string;
  readonly nextAtMs: number;
}

/** What an agent elsewhere answered to a message, in A2A 1.0. */
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
  /** Before then the requester's id was somebody else's. */
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
  /** Those to be looked at now or later, of every tenant its first by their time. */
  timedRemoteTasks(query: TimedRemoteTaskQuery): Promise<readonly TimedRemoteTask[]>;
  /** What the agent there calls the requester's thread, as of the newest task that says. */
  remoteContextId(query: RemoteContextQuery): Promise<string | undefined>;
}
