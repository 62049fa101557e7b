import type { AgentId } from "@a2a-relay/protocol";
import type { RemoteTask, TimedRemoteTask } from "./remote-task.ts";

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
