import { randomUUID } from "node:crypto";
import type { QueueTaskInput, AgentId } from "@a2a-relay/protocol";
import { type AgentPrincipal, agentOf, DEFAULT_TENANT } from "../src/core/access/principal.ts";
import type { CoreSettings } from "../src/core/relay-core.ts";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "./core-on-memory.ts";

export const KAMES = "kames@kamac" as AgentId;

/** A task from lulu to zhiwei with a fresh id and the given members. */
export function aQueueTask(said: Partial<QueueTaskInput> = {}): QueueTaskInput & { readonly id: string } {
  return { id: randomUUID(), sender: LULU, recipient: ZHIWEI, intent_text: "把报告翻译成中文", ...said };
}

/** An idempotent task with this key. */
export function aSharedTask(
  key: string,
  said: Partial<QueueTaskInput> = {},
): QueueTaskInput & { id: string } {
  return aQueueTask({ idempotency: { duplicate_safety: "idempotent", key }, ...said });
}

export function anOkResult(taskId: string, text = "翻译好了"): object {
  return { task_id: taskId, status: "ok", content: [{ type: "text", text }] };
}

export interface CoreWithQueue extends CoreOnMemory {
  readonly kames: AgentPrincipal;
  /** Queues a task from lulu for zhiwei and returns its id. */
  queueTask(said?: Partial<QueueTaskInput>): Promise<string>;
  /** Zhiwei leases the oldest task; empty strings if there is none. */
  takeTask(): Promise<{ readonly id: string; readonly leaseId: string; readonly attempt: number }>;
  /** Zhiwei leases the oldest task and posts its result. */
  finishTask(text?: string): Promise<string>;
}

/** A core in memory with kames as a third agent. */
export async function coreWithQueue(settings: Partial<CoreSettings> = {}): Promise<CoreWithQueue> {
  const core = await coreOnMemory(settings);
  await core.agents.register(core.operator, { agent_id: KAMES });
  const takeTask: CoreWithQueue["takeTask"] = async () => {
    const { task, lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    return { id: task?.id ?? "", leaseId: lease?.lease_id ?? "", attempt: lease?.attempt ?? 0 };
  };
  return {
    ...core,
    kames: agentOf(DEFAULT_TENANT, KAMES),
    queueTask: async (said) => (await core.taskQueue.sendTask(core.lulu, aQueueTask(said))).task_id,
    takeTask,
    finishTask: async (text) => {
      const { id } = await takeTask();
      await core.taskQueue.postResult(core.zhiwei, anOkResult(id, text));
      return id;
    },
  };
}
