// An agent under test: lulu talks to zhiwei, whose answers stand in scripted-agent.yaml. It asks back, and it dies
// in the middle of one answer. Run it with
//
//   npx node --conditions=source examples/scripted-agent.ts

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayAgent, type TaskOutcome } from "@a2a-relay/client";
import { loadCassette, loadConfig, playCassette, startRelay } from "a2a-relay";

const data = await mkdtemp(join(tmpdir(), "scripted-agent-"));
const relay = await startRelay(loadConfig({ flags: { port: "0", data }, env: {}, dotenv: {} }));
const { url } = relay;

const cassette = await loadCassette(join(import.meta.dirname, "scripted-agent.yaml"));
const play = () =>
  playCassette(
    {
      url,
      onPlayed: ({ exchange, outcome }) => console.log(`zhiwei: ${exchange?.name ?? "?"}, ${outcome}`),
    },
    cassette,
  );
const zhiwei = await play();

const lulu = new RelayAgent({ url, id: "lulu@laptop" });
await lulu.start();
const ask = (body: string) => lulu.request({ to: "zhiwei@studio", body });
const result = (outcome: TaskOutcome): readonly [string, string] => [outcome.state, outcome.text];

assert.deepEqual(result(await (await ask("知微你好")).result()), ["completed", "你好,我是知微。"]);

// zhiwei wants to know something first. What lulu answers goes on behind the question.
const poem = await ask("写一首诗");
assert.deepEqual(result(await poem.result()), ["input-required", "谁的诗?"]);
await lulu.send({ to: "zhiwei@studio", type: "reply", task_id: poem.taskId, body: "李白的" });
const written = await poem.result();
assert.deepEqual(result(written), ["completed", "写好了"]);
assert.deepEqual(
  written.task.artifacts[0]?.parts.map((part) => part["text"]),
  ["床前明月光,", "疑是地上霜。"],
);

// What the cassette does not know is failed, unless it says otherwise.
assert.equal((await (await ask("天气如何?")).result()).state, "failed");

// The agent dies without a word. The message is still there for the next one, and is answered once.
const fragile = await ask("轻点");
await assert.rejects(zhiwei.ended, /crashed the agent at .*scripted-agent\.yaml/);
const next = await play();
assert.deepEqual(result(await fragile.result()), ["completed", "我没事"]);

await Promise.all([lulu.stop(), next.stop(), zhiwei.stop()]);
await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
