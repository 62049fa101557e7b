import { randomUUID } from "node:crypto";
import type { QueueTaskInput, AgentId } from "@a2a-relay/protocol";
import { type AgentPrincipal, agentOf, DEFAULT_TENANT } from "../src/core/access/principal.ts";
import type { CoreSettings } from "../src/core/relay-core.ts";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "./core-on-memory.ts";

export const KAMES = "kames@kamac" as AgentId;

/** A task from lulu to zhiwei under an id of its own, with what the test says about it. */
export function aQueueTask(said: Partial<QueueTaskInput> = {}): QueueTaskInput & { readonly id: string } {
  return { id: randomUUID(), sender: LULU, recipient: ZHIWEI, intent_text: "把报告翻译成中文", ...said };
}

/** Work that its sender lets be done twice, known by this key. */
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
  /** Queues a task of lulu's for zhiwei and answers with its id. */
  queueTask(said?: Partial<QueueTaskInput>): Promise<string>;
  /** Zhiwei takes the oldest task and answers with its lease id; empty when there was none. */
  takeTask(): Promise<{ readonly id: string; readonly leaseId: string; readonly attempt: number }>;
  /** Zhiwei takes the oldest task and answers it. */
  finishTask(text?: string): Promise<string>;
}

/** The core in memory with a third agent that has nothing to do with the other two. */
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
