import assert from "node:assert/strict";
import type { A2aPushConfig, AgentId } from "@a2a-relay/protocol";
import type { A2aCaller } from "../src/core/a2a/a2a-request.ts";
import type { TaskPushResult } from "../src/core/outbound/task-push-delivery.ts";
import type { TaskPushConfig } from "../src/core/ports/task-pushes.ts";
import { agentOf, DEFAULT_TENANT, type Principal } from "../src/core/access/principal.ts";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "./core-on-memory.ts";
import { FakeOutside } from "./fake-outside.ts";

export const HOOK = "https://lulu.example/回执";
export const KAMES = "kames@桌面" as AgentId;

/** A core that pushes updates of zhiwei's tasks to lulu, step by step. */
export interface TaskPushingCore extends CoreOnMemory {
  readonly outside: FakeOutside;
  /** A caller of zhiwei; by default lulu in 1.0. */
  caller(said?: Partial<A2aCaller>): A2aCaller;
  /** Sends a request to zhiwei, by default from lulu. Returns the task's id. */
  ask(caller?: Partial<A2aCaller>): Promise<string>;
  /** Configures pushes of the task, by default to lulu. */
  tell(taskId: string, said?: object, caller?: Partial<A2aCaller>): Promise<A2aPushConfig>;
  works(taskId: string, text: string): Promise<unknown>;
  completes(taskId: string, text: string): Promise<unknown>;
  /** Attempts what is due until nothing is. */
  push(): Promise<readonly TaskPushResult[]>;
  /** The only configuration of the task. */
  config(taskId: string): Promise<TaskPushConfig>;
  /** The bodies of all requests, in order. */
  bodies(): readonly Readonly<Record<string, unknown>>[];
}

export async function taskPushingCore(): Promise<TaskPushingCore> {
  const outside = new FakeOutside();
  const core = await coreOnMemory({}, outside);
  const { store, lulu, zhiwei, taskPushDelivery } = core;
  await core.agents.register(core.operator, { agent_id: KAMES });
  const caller = (said: Partial<A2aCaller> = {}): A2aCaller => ({
    principal: lulu,
    agentId: ZHIWEI,
    version: "1.0",
    extensions: [],
    idempotencyKey: undefined,
    ...said,
  });
  const { signal } = new AbortController();
  return {
    ...core,
    outside,
    caller,
    ask: async (who = {}) => {
      const message = { messageId: "问一", role: "ROLE_USER", parts: [{ text: "请译成英文" }] };
      const configuration = { returnImmediately: true };
      const { task } = await core.a2a.send(caller(who), { message, configuration }, {});
      assert.ok(task);
      return task.id;
    },
    tell: (taskId, said = {}, who = {}) => core.a2aPushes.create(caller(who), { taskId, url: HOOK, ...said }),
    works: (taskId, text) => core.tasks.reportStatus(zhiwei, taskId, { state: "working", text }),
    completes: (taskId, text) => core.tasks.complete(zhiwei, taskId, { text }),
    push: async () => {
      const results: TaskPushResult[] = [];
      for (;;) {
        const [config] = (await taskPushDelivery.chooseDue(new Set())).due;
        if (config === undefined) return results;
        const ended = await taskPushDelivery.attempt(config, signal);
        if (ended !== "idle") results.push(await taskPushDelivery.record(ended));
      }
    },
    config: async (taskId) => {
      const [config] = await store.taskPushes.ofTask(DEFAULT_TENANT, taskId);
      assert.ok(config, `task ${taskId} has no push configuration`);
      return config;
    },
    bodies: () =>
      outside.requests.map(({ body }) => JSON.parse(body ?? "") as Readonly<Record<string, unknown>>),
  };
}

export function asAgent(agentId: AgentId): { readonly principal: Principal } {
  return { principal: agentOf(DEFAULT_TENANT, agentId) };
}
