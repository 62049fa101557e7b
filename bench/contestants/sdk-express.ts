import { AgentCard, TaskState } from "@a2a-js/sdk";
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";

// The official SDK's own server, as its documentation puts it together: tasks in memory, lost with the process. Its
// agent does the least that an agent can: it says that the task was submitted.
const executor: AgentExecutor = {
  execute: async ({ taskId, contextId, userMessage }, bus) => {
    const status = {
      state: TaskState.TASK_STATE_SUBMITTED,
      timestamp: new Date().toISOString(),
      message: undefined,
    };
    const task = {
      id: taskId,
      contextId,
      status,
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    };
    bus.publish(AgentEvent.task(task));
    bus.finished();
  },
  cancelTask: async () => undefined,
};

const card = AgentCard.fromJSON({
  name: "bench",
  description: "bench",
  version: "1.0.0",
  supportedInterfaces: [{ url: "http://127.0.0.1/", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
});
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use("/", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => process.exit(0));
