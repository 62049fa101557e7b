import type { AgentId } from "@a2a-relay/protocol";
import type { RemoteTask } from "./remote-task.ts";

export interface RemoteContextQuery {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly threadId: string;
  /** Of the interface: what a context is called is known to one agent only. */
  readonly url: string;
}

/** Changed through `commit` like everything else: `remoteTasks`. A row goes with its task. */
export interface RemoteTaskStore {
  remoteTask(tenant: string, taskId: string): Promise<RemoteTask | undefined>;
  /** Those to be looked at, of all tenants, the longest due first. */
  dueRemoteTasks(nowMs: number, limit: number): Promise<readonly RemoteTask[]>;
  /** What the agent there calls the thread, as of the newest task that says. */
  remoteContextId(query: RemoteContextQuery): Promise<string | undefined>;
}
