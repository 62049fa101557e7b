import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { textOfParts } from "@a2a-relay/protocol";
import { LULU, openCliRelay, ZHIWEI } from "../../testing/cli-relay.ts";
import { ask, reaches } from "../../testing/recording-scene.ts";
import { parseCassette } from "./cassette-parser.ts";
import { ArtifactProgress } from "./resume.ts";
import { playCassette } from "./scripted-agent.ts";

const piece = (append: boolean, partCount = 1): Parameters<ArtifactProgress["isNew"]>[0] => {
  return { artifactId: "诗", append, partCount };
};

describe("the pieces of an artifact", () => {
  it("are new unless the task has as many already", () => {
    const pieces = new ArtifactProgress({ artifacts: [{ artifactId: "诗", parts: [{}, {}] }] });
    pieces.count(piece(false));
    assert.deepEqual([pieces.isNew(piece(true)), pieces.isNew(piece(true))], [false, true]);
  });

  it("are all new behind one that replaces the artifact", () => {
    const pieces = new ArtifactProgress({ artifacts: [{ artifactId: "诗", parts: [{}, {}, {}] }] });
    assert.deepEqual([pieces.isNew(piece(false)), pieces.isNew(piece(true))], [true, true]);
  });

  it("are added once by a script that dies behind them, in a turn after the first", async () => {
    await using relay = await openCliRelay();
    const script = `
version: 1
agent: ${ZHIWEI}
exchanges:
  - reply:
      - artifact: { id: 诗, text: 床前 }
      - ask: 还要吗?
      - artifact: { id: 诗, append: true, chunks: [明月光, 疑是] }
      - crash: 1
      - artifact: { id: 诗, append: true, text: 地上霜 }
      - reply: 好了
`;
    const cassette = await parseCassette(script, "talk.yaml");
    const options = { url: relay.url, leaseMs: 200 };
    const first = await playCassette(options, cassette);
    const taskId = await ask(relay, "背诗");
    await reaches(relay, taskId, "input-required");
    await relay.client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "要" });
    await assert.rejects(first.ended, /crashed the agent/);
    await using _ = await playCassette(options, cassette);
    const { artifacts } = await reaches(relay, taskId, "completed");
    assert.equal(textOfParts(artifacts[0]?.parts ?? []), "床前\n明月光\n疑是\n地上霜");
  });
});
