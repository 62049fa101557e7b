import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayAgent, type TaskHandler } from "@a2a-relay/client";
import type { TaskView } from "@a2a-relay/protocol";
import { RecordingAgent, type RecordingAgentOptions } from "../src/cassettes/recording-agent.ts";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "./cli-relay.ts";

export const REAL = "zhiwei@cloud";
const POLL_MS_MAX = 10_000;

/** A relay with a real agent, and a recorder that passes requests on to it. */
export async function recordingScene(handler: TaskHandler, options: Partial<RecordingAgentOptions> = {}) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "recording-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const relay = stack.use(await openCliRelay());
  const real = new RelayAgent({ url: relay.url, id: REAL }).onTask(handler).onMessage(() => undefined);
  await real.start();
  stack.defer(() => real.stop());
  const path = join(folder, "知微.yaml");
  let nowMs = 0;
  const record = async (): Promise<RecordingAgent> => {
    const own = { url: relay.url, id: ZHIWEI, upstream: REAL, cassette: path };
    // Time stands still between steps unless a test says otherwise.
    const recorder = new RecordingAgent({ ...own, nowMs: () => nowMs, onError: () => undefined, ...options });
    await recorder.start();
    return recorder;
  };
  const owned = stack.move();
  return {
    relay,
    path,
    folder,
    record,
    pass: (ms: number) => void (nowMs += ms),
    text: () => readFile(path, "utf8"),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export async function ask(relay: CliRelay, body: string): Promise<string> {
  const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, type: "request", body });
  return receipt.task_id ?? "";
}

export async function reaches(relay: CliRelay, taskId: string, state: TaskView["state"]): Promise<TaskView> {
  const endMs = performance.now() + POLL_MS_MAX;
  for (;;) {
    const task = await relay.client.task(taskId);
    if (task.state === state) return task;
    assert.ok(performance.now() < endMs, `the task is ${task.state}: ${task.status_text}`);
  }
}

export async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + POLL_MS_MAX;
  while (!(await isSo())) assert.ok(performance.now() < endMs, "the condition did not hold in time");
}
