// Several workers share one mailbox: leases divide the work, fencing keeps late results out. Run it with
//
//   npx node --conditions=source examples/many-workers.ts

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { RelayAgent, RelayClient, RelayError } from "@a2a-relay/client";
import { loadConfig, startRelay } from "a2a-relay";

const data = await mkdtemp(join(tmpdir(), "many-workers-"));
const relay = await startRelay(loadConfig({ flags: { port: "0", data }, env: {}, dotenv: {} }));
const { url } = relay;
const client = new RelayClient({ url });
await client.register({ agent_id: "lulu@laptop" });

// Three processes would do the same: workers with the same id share its work.
const doneBy = new Map<string, string>();
const workers = ["anna", "ben", "chen"].map((name) =>
  new RelayAgent({ url, id: "renderer@farm", concurrency: 1 }).onTask(async (task) => {
    assert.ok(!doneBy.has(task.text), `${task.text} was given to two workers`);
    doneBy.set(task.text, name);
    await sleep(20);
    return `${task.text} rendered by ${name}`;
  }),
);
await Promise.all(workers.map((worker) => worker.start()));

const lulu = new RelayAgent({ url, id: "lulu@laptop" });
await lulu.start();
const frames = Array.from({ length: 12 }, (_, index) => `frame ${index + 1}`);
const outcomes = await Promise.all(
  frames.map(async (body) => {
    const request = await lulu.request({ to: "renderer@farm", body });
    return request.result();
  }),
);
assert.ok(outcomes.every(({ ok }) => ok));
for (const [name, list] of Map.groupBy(doneBy.keys(), (frame) => doneBy.get(frame))) {
  console.log(`${name}: ${list.join(", ")}`);
}
await Promise.all([lulu, ...workers].map((agent) => agent.stop()));

// The same by hand, to see what a lease is. The sender says that rendering twice does no harm, so the relay
// may give the work to another worker when its worker falls silent.
const { receipt } = await client.send({
  from: "lulu@laptop",
  to: "renderer@farm",
  type: "request",
  body: "frame 13",
  idempotency: { duplicate_safety: "idempotent", key: "frame-13" },
});
const taskId = receipt.task_id ?? "";
const [anna] = (await client.lease("renderer@farm", { worker: "anna", lease_ms: 100 })).messages;
// Anna sleeps. After 100 ms her lease runs out; the relay notices and ben, who waits, gets the same frame.
const [ben] = (await client.lease("renderer@farm", { worker: "ben", wait_ms: 10_000 })).messages;
console.log(`frame 13: anna had attempt ${anna?.lease.attempt}, ben has attempt ${ben?.lease.attempt}`);
assert.deepEqual([anna?.lease.attempt, ben?.lease.attempt], [1, 2]);

const late = client.completeTask(taskId, { text: "anna's frame", lease_id: anna?.lease.id ?? "" });
const refusal = await late.catch((reason: unknown) => reason);
assert.ok(refusal instanceof RelayError && refusal.code === "lease_lost");
console.log(`anna is refused: ${refusal.code}`);
await client.completeTask(taskId, { text: "ben's frame", lease_id: ben?.lease.id ?? "" });
assert.equal((await client.task(taskId)).status_text, "ben's frame");

await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
