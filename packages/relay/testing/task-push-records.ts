import assert from "node:assert/strict";
import type { TaskPushConfig } from "../src/core/ports/task-pushes.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { TaskRecord } from "../src/core/ports/tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import { aNewTask, commit, LULU, newId, send, TENANT } from "./store-builders.ts";

/** A configuration that is not yet stored, with nothing to send. */
export function aNewTaskPush(said: Partial<TaskPushConfig> = {}): TaskPushConfig {
  return {
    tenant: TENANT,
    taskId: "task",
    id: said.id ?? newId("push"),
    owner: LULU,
    url: "https://lulu.example/回执",
    token: null,
    scheme: null,
    credentials: null,
    dialect: "1.0",
    state: "active",
    reason: null,
    afterN: 0,
    attempts: 0,
    givenUp: 0,
    nextAtMs: null,
    sentAtMs: null,
    createdAtMs: NOON_MS,
    version: 0,
    ...said,
  };
}

/** A task with the message that asked for it. */
export async function storedTask(store: RelayStore, said: Partial<TaskRecord> = {}): Promise<TaskRecord> {
  const task = aNewTask(said);
  const { tenant, id } = task;
  const { id: messageId } = await send(store, { tenant, taskId: id });
  await commit(store, { tenant, tasks: [{ ...task, messageId }] });
  const [stored] = await store.tasks.get(tenant, [id]);
  assert.ok(stored);
  return stored;
}

export async function storedTaskPush(
  store: RelayStore,
  said: Partial<TaskPushConfig> & { readonly taskId: string },
): Promise<TaskPushConfig> {
  const config = aNewTaskPush(said);
  const { tenant, taskId, id } = config;
  await commit(store, { tenant, taskPushes: [config] });
  const stored = await store.taskPushes.get(tenant, taskId, id);
  assert.ok(stored);
  return stored;
}
