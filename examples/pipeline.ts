// A pipeline of three stations inside one program: each takes tasks, does its part and passes the work on. The
// relay runs embedded, so nothing travels over a wire, and everything survives a crash all the same. Run it with
//
//   npx node --conditions=source examples/pipeline.ts

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayClient } from "@a2a-relay/client";
import { loadConfig, startRelay } from "a2a-relay";

const data = await mkdtemp(join(tmpdir(), "pipeline-"));
const relay = await startRelay(loadConfig({ flags: { port: "0", data }, env: {}, dotenv: {} }));
const client = new RelayClient({ url: relay.url });
const STATIONS = ["draft@press", "translate@press", "print@press"] as const;
for (const agent_id of ["editor@press", ...STATIONS]) await client.register({ agent_id });

const mailbox = relay.mailbox();
const DOES: Readonly<Record<string, (text: string) => string>> = {
  "draft@press": (text) => `${text}: the moon is full`,
  "translate@press": (text) => text.replace("the moon is full", "月亮圆了"),
  "print@press": (text) => `【${text}】`,
};

// The consumer: one loop takes whatever is next for any station, does it and answers. A station that answers
// has also asked the next one, whose task is its child.
const stopping = new AbortController();
const working = (async (): Promise<void> => {
  for (;;) {
    const task = await mailbox.recvTask({ signal: stopping.signal });
    const station = task.recipient.display;
    const text = DOES[station]?.(task.intent_text) ?? "";
    const next = STATIONS[STATIONS.findIndex((each) => each === station) + 1];
    if (next !== undefined) {
      const id = `${task.id}.${next}`;
      await mailbox.sendTask({ id, sender: station, recipient: next, intent_text: text, parent: task.id });
    }
    await mailbox.sendResult({
      task_id: task.id,
      status: "ok",
      content: [{ type: "text", text }],
      lease_id: task.lease.lease_id,
    });
  }
})();

// The producer: three articles at once.
const articles = ["monday", "tuesday", "星期三"];
for (const id of articles) {
  await mailbox.sendTask({ id, sender: "editor@press", recipient: STATIONS[0], intent_text: id });
}

// Every station's result goes to the agent that asked it; the last station's is the printed page.
const pages: string[] = [];
for (let left = articles.length * STATIONS.length; left > 0; left -= 1) {
  const { task_id, content } = await mailbox.recvResult({ signal: AbortSignal.timeout(10_000) });
  const [block] = content;
  const text = block?.type === "text" ? block.text : "";
  console.log(`${task_id.padEnd(45)} ${text}`);
  if (task_id.endsWith("print@press")) pages.push(text);
}
assert.deepEqual(
  pages,
  articles.map((day) => `【${day}: 月亮圆了】`),
);

stopping.abort();
await working.catch(() => undefined);
await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
