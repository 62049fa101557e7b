import { randomUUID } from "node:crypto";
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { Artifact, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { serveExecutor } from "@a2a-relay/client/a2a-executor";

// A program like those that people have: an executor that knows of no relay, and the one line that serves it. It is
// run by executor-behind-nat.test.ts, with the address of the relay, its own, and one at which it waits for its work.

const [url = "", agentId = "", source = ""] = process.argv.slice(2);

class Translator implements AgentExecutor {
  async execute({ taskId, contextId }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const ids = { taskId, contextId };
    // As most executors do, it makes up ids and does not ask whether it was here before.
    const artifactId = randomUUID();
    const put = (text: string, how: object): void => {
      const artifact = Artifact.toJSON(Artifact.fromJSON({ artifactId, name: "译文", parts: [{ text }] }));
      const event = TaskArtifactUpdateEvent.fromJSON({ ...ids, artifact, ...how });
      bus.publish(AgentEvent.artifactUpdate(event));
    };
    const begun = { id: taskId, contextId, status: { state: "TASK_STATE_WORKING" } };
    bus.publish(AgentEvent.task(Task.fromJSON(begun)));
    put("上半", { lastChunk: false });
    const rest = await fetch(source);
    put(await rest.text(), { append: true, lastChunk: true });
    const status = { state: "TASK_STATE_COMPLETED" };
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status })));
    bus.finished();
  }

  async cancelTask(): Promise<void> {}
}

// Short, because what it had when it was killed is its own again when the lease has run out.
await serveExecutor(new Translator(), { url, agentId, leaseMs: 1_000 });
process.stdout.write(`${JSON.stringify(process.getActiveResourcesInfo())}\n`);
