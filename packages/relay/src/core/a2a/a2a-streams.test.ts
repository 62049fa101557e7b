import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Artifact } from "@a2a-relay/protocol";
import { callerOf } from "../../../testing/a2a-requests.ts";
import { askedTask } from "../../../testing/asked-task.ts";
import type { A2aPage } from "./a2a-streams.ts";

function piecesOf(artifacts: readonly Artifact[] | undefined): string {
  return (artifacts ?? []).flatMap(({ parts }) => parts.map((part) => String(part["text"]))).join("");
}

describe("the task that a stream begins with", () => {
  const reads = [
    ["messages", "get"],
    ["tasks", "lastUpdates"],
    ["tasks", "withArtifacts"],
    ["tasks", "artifacts"],
  ] as const;
  for (const [noun, verb] of reads) {
    it(`contains every chunk once, also one that arrives before ${noun}.${verb} is read`, async () => {
      const { core, taskId } = await askedTask();
      await using _ = core;
      const add = (text: string, append: boolean): Promise<unknown> =>
        core.tasks.addArtifact(core.zhiwei, taskId, {
          artifact: { artifactId: "a", parts: [{ text }] },
          append,
        });
      await add("一", false);
      const store = core.store[noun] as unknown as Record<string, (...asked: unknown[]) => Promise<unknown>>;
      const read = store[verb]?.bind(store) ?? assert.fail();
      const pages = await core.a2a.subscribe(callerOf(core.lulu), { id: taskId }, { afterN: undefined });
      store[verb] = async (...asked) => {
        store[verb] = read;
        await add("二", true);
        return read(...asked);
      };
      let text = "";
      const show = ({ events }: A2aPage): void => {
        for (const { event } of events) {
          if (event.task !== undefined) text = piecesOf(event.task.artifacts);
          if (event.artifactUpdate !== undefined) text += piecesOf([event.artifactUpdate.artifact]);
        }
      };
      const reader = pages[Symbol.asyncIterator]();
      show((await reader.next()).value as A2aPage);
      store[verb] = read;
      await add("三", true);
      await core.tasks.complete(core.zhiwei, taskId, { text: "好了" });
      for (let next = await reader.next(); next.done !== true; next = await reader.next()) show(next.value);
      assert.match(text, /^一二?三$/);
      const [whole] = await core.store.tasks.artifacts(core.operator.tenant, taskId);
      assert.equal(text, piecesOf(whole === undefined ? [] : [whole]));
    });
  }
});
