import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refused } from "../../../testing/refusal.ts";
import { parseAction } from "./capability-demand.ts";

describe("an action", () => {
  it("is one of six, with an agent where two take part", () => {
    assert.deepEqual(parseAction("a2a.send.zhiwei@known-blocks1"), {
      verb: "send",
      peer: "zhiwei@known-blocks1",
    });
    assert.deepEqual(parseAction("a2a.recv.知微"), { verb: "recv", peer: "知微" });
    assert.deepEqual(parseAction("a2a.respond.a.b.c"), { verb: "respond", peer: "a.b.c" });
    for (const plain of ["a2a.repair.requeue", "a2a.repair.force_error", "a2a.compact"]) {
      assert.deepEqual(parseAction(plain), { plain });
    }
  });

  const wrong = [
    "",
    "a2a",
    "a2a.*",
    "a2a.send",
    "a2a.send.",
    "a2a.send.*",
    "a2a.send.lu*",
    "a2a.delete.lulu",
  ];
  for (const text of [
    ...wrong,
    "A2A.send.lulu",
    "a2a.repair.*",
    "a2a.repair",
    "a2a.compact.lulu",
    " a2a.compact",
  ]) {
    it(`is not "${text}"`, async () => {
      await refused(() => parseAction(text), "invalid_argument", /no wildcards/);
    });
  }
});
