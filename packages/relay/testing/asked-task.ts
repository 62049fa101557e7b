import { type CoreOnMemory, coreOnMemory } from "./core-on-memory.ts";

/** A core with one task that lulu requested from zhiwei. */
export interface AskedTask {
  readonly core: CoreOnMemory;
  readonly taskId: string;
  readonly requestId: string;
}

export async function askedTask(): Promise<AskedTask> {
  const core = await coreOnMemory();
  const { receipt } = await core.send({ type: "request", subject: "看看" });
  return { core, taskId: receipt.task_id ?? "", requestId: receipt.message_id };
}
