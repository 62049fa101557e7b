// Fan-out and gather: a coordinator splits a task among others and answers when all of them have. Run it with
//
//   npx node --conditions=source examples/fan-out.ts

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayAgent } from "@a2a-relay/client";
import { loadConfig, startRelay } from "a2a-relay";

const data = await mkdtemp(join(tmpdir(), "fan-out-"));
const relay = await startRelay(loadConfig({ flags: { port: "0", data }, env: {}, dotenv: {} }));
const { url } = relay;

// Three translators, of whom one does not know every word.
const WORDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "chinese@studio": { hello: "你好", tea: "茶" },
  "french@studio": { hello: "bonjour", tea: "thé" },
  "klingon@studio": { hello: "nuqneH" },
};
const translators = Object.entries(WORDS).map(([id, words]) =>
  new RelayAgent({ url, id }).onTask(async (task) => {
    const translation = words[task.text];
    if (translation === undefined) throw new Error(`${id} has no word for "${task.text}"`);
    return translation;
  }),
);

// `parent` makes every child part of the task it came from, so that the whole work can be read as a tree.
const coordinator = new RelayAgent({ url, id: "coordinator@studio" }).onTask(async (task) => {
  const children = await Promise.all(
    Object.keys(WORDS).map((to) => coordinator.request({ to, body: task.text, parent: task.id })),
  );
  const outcomes = await Promise.all(children.map((child) => child.result({ signal: task.signal })));
  const answers = outcomes.map(({ ok, text }) => (ok ? text : "?"));
  return { text: answers.join(", "), resultStatus: outcomes.every(({ ok }) => ok) ? "ok" : "partial" };
});

const lulu = new RelayAgent({ url, id: "lulu@laptop" });
const everybody = [...translators, coordinator, lulu];
await Promise.all(everybody.map((agent) => agent.start()));

for (const [word, expected, status] of [
  ["hello", "你好, bonjour, nuqneH", "ok"],
  ["tea", "茶, thé, ?", "partial"],
] as const) {
  const request = await lulu.request({ to: "coordinator@studio", body: word });
  const { text, task } = await request.result();
  console.log(`${word}: ${text} (${task.result_status})`);
  assert.deepEqual([text, task.result_status], [expected, status]);

  const { children } = await coordinator.client.taskTree(request.taskId);
  for (const child of children) console.log(`  ${child.task.assignee}: ${child.task.state}`);
  assert.equal(children.length, translators.length);
}

await Promise.all(everybody.map((agent) => agent.stop()));
await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
