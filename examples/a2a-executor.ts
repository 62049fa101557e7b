// An agent that serves A2A without running a server: an AgentExecutor as people write it for the official SDK takes its
// work from the relay, in one line, and the SDK's own client talks to it as to any other agent. Run it with
//
//   npx node --conditions=source examples/a2a-executor.ts

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Message, type Part, Role, SendMessageRequest, type Task, TaskState } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { serveExecutor } from "@a2a-relay/client/a2a-executor";
import { loadConfig, startRelay } from "a2a-relay";

const textPart = (text: string): Part => ({
  content: { $case: "text", value: text },
  mediaType: "text/plain",
  filename: "",
  metadata: undefined,
});
const textOf = (parts: readonly Part[] = []): string =>
  parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");

/** Nothing in it knows of a relay. It asks whom to greet, then says so word by word. */
class Greeter implements AgentExecutor {
  async execute(
    { taskId, contextId, task, userMessage }: RequestContext,
    bus: ExecutionEventBus,
  ): Promise<void> {
    const ids = { taskId, contextId };
    const setStatus = (state: TaskState, text?: string): void => {
      const message: Message | undefined =
        text === undefined
          ? undefined
          : { ...agentMessage, ...ids, messageId: randomUUID(), parts: [textPart(text)] };
      const status = { state, message, timestamp: new Date().toISOString() };
      bus.publish(AgentEvent.statusUpdate({ ...ids, status, metadata: undefined }));
    };
    if (task === undefined) return setStatus(TaskState.TASK_STATE_INPUT_REQUIRED, "你叫什么名字?");
    setStatus(TaskState.TASK_STATE_WORKING, "thinking of words");
    const words = ["你好,", textOf(userMessage.parts), "!"];
    for (const [index, word] of words.entries()) {
      const artifact = {
        artifactId: "greeting",
        name: "greeting",
        parts: [textPart(word)],
        ...emptyArtifact,
      };
      const how = { append: index > 0, lastChunk: index === words.length - 1, metadata: undefined };
      bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact, ...how }));
    }
    return setStatus(TaskState.TASK_STATE_COMPLETED);
  }

  async cancelTask(): Promise<void> {}
}
const agentMessage = { role: Role.ROLE_AGENT, metadata: undefined, extensions: [], referenceTaskIds: [] };
const emptyArtifact = { description: "", metadata: undefined, extensions: [] };

const data = await mkdtemp(join(tmpdir(), "a2a-executor-"));
const relay = await startRelay(loadConfig({ flags: { data, port: "0" }, env: {}, dotenv: {} }));

// This is the line. It opens no port: behind a firewall, on a laptop, it is the same.
const greeter = await serveExecutor(new Greeter(), { url: relay.url, agentId: "greeter@laptop" });

// An A2A client finds the agent at the relay, by its card.
const client = await new ClientFactory().createFromUrl(`${relay.url}/agents/greeter@laptop/`);
const say = (text: string, more: object = {}): SendMessageRequest => {
  const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more };
  return SendMessageRequest.fromJSON({ message });
};
const asked = (await client.sendMessage(say("greet me"))) as Task;
assert.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED);
console.log(`greeter asks: ${textOf(asked.status.message?.parts)}`);

let greeting = "";
let last: TaskState | undefined;
for await (const { payload } of client.sendMessageStream(say("知微", { taskId: asked.id }))) {
  // The first event is the current task.
  if (payload?.$case === "task") greeting = textOf(payload.value.artifacts.flatMap(({ parts }) => parts));
  if (payload?.$case === "artifactUpdate") greeting += textOf(payload.value.artifact?.parts);
  if (payload?.$case === "task" || payload?.$case === "statusUpdate") last = payload.value.status?.state;
}
console.log(`greeter says: ${greeting}`);
assert.equal(greeting, "你好,知微!");
assert.equal(last, TaskState.TASK_STATE_COMPLETED);

await greeter.stop();
await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
