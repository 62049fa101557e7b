// Two agents: one asks, one answers. Run it with
//
//   npx node --conditions=source examples/two-agents.ts

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayAgent } from "@a2a-relay/client";
import { loadConfig, startRelay } from "a2a-relay";

// A relay of our own on a free port. Yours is already running; then you only need its address.
const data = await mkdtemp(join(tmpdir(), "two-agents-"));
const relay = await startRelay(loadConfig({ flags: { port: "0", data }, env: {}, dotenv: {} }));
const { url } = relay;

// zhiwei answers. What the handler returns completes the task; a thrown error would fail it.
const words = new Map([["hello", "你好"]]);
const zhiwei = new RelayAgent({ url, id: "zhiwei@studio", displayName: "知微" }).onTask(async (task) => {
  await task.working("searching");
  const translation = words.get(task.text);
  if (translation === undefined) task.reject(`I do not know "${task.text}"`);
  return translation;
});

// lulu asks, before zhiwei has even started: the request waits in the mailbox.
const lulu = new RelayAgent({ url, id: "lulu@laptop" });
await lulu.start();
await lulu.client.register({ agent_id: "zhiwei@studio", display_name: "知微" });
const hello = await lulu.request({ to: "知微", body: "hello" });
const tea = await lulu.request({ to: "知微", body: "tea" });

await zhiwei.start();
const [known, unknown] = await Promise.all([hello.result(), tea.result()]);
console.log(`hello: ${known.state}, ${known.text}`);
console.log(`tea:   ${unknown.state}, ${unknown.text}`);
assert.deepEqual([known.state, known.text], ["completed", "你好"]);
assert.deepEqual([unknown.state, unknown.text], ["rejected", 'I do not know "tea"']);

// Every step left a receipt, and the journal proves that the record was not changed afterwards.
const { receipts } = await lulu.client.message(hello.receipt.message_id);
for (const { at, stage, by } of receipts) console.log(`${at}  ${stage.padEnd(12)}  ${by}`);
assert.deepEqual(
  receipts.map(({ stage }) => stage),
  ["accepted", "leased", "working", "acknowledged", "replied"],
);
assert.equal((await lulu.client.verifyJournal()).ok, true);

await Promise.all([lulu.stop(), zhiwei.stop()]);
await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
