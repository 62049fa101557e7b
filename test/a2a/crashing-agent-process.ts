import { RelayAgent } from "@a2a-relay/client";

// An agent that gets stuck in whatever it does for the first time. It is run by sdk-client-availability.test.ts, with
// the address of the relay and its own, and is killed and started again there.

const [url = "", id = ""] = process.argv.slice(2);

// Short, because what it had when it was killed is its own again when the lease has run out.
const agent = new RelayAgent({ url, id, worker: "the-only-one", concurrency: 10, leaseMs: 1_000 });
agent.onTask(async (task) => {
  if (task.attempt > 1) return `第${task.attempt}次才做完：${task.text}`;
  await task.addArtifact({ artifactId: "half", name: "半成品", parts: [{ text: "上半" }] });
  await task.working("卡住了");
  await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
  throw new Error("it was stopped, not killed");
});
await agent.start();
