import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { aNewAgent } from "../../../testing/store-builders.ts";
import type { AgentRecord } from "../ports/agents.ts";
import { fitOf, searchWords } from "./agent-search.ts";

const NOTHING = { id: "x" as AgentId, displayName: "x", card: {}, skills: [], representativeQueries: [] };

function fit(said: Partial<AgentRecord>, text: string): number {
  return fitOf(aNewAgent({ ...NOTHING, ...said }), searchWords(text));
}

describe("the words of a question", () => {
  it("leave out stop words, in any script", () => {
    assert.deepEqual(searchWords("Please find me an agent that can TRANSLATE contracts!"), [
      "translate",
      "contracts",
    ]);
    assert.deepEqual(searchWords("谁会翻译合同？"), ["翻译", "合同"]);
    assert.deepEqual(searchWords("ｔｒａｎｓｌａｔｅ translate"), ["translate"]);
    assert.deepEqual(searchWords("list all agents"), []);
    assert.deepEqual(searchWords("？！ …"), []);
  });

  it("are limited in number, and read from a limited length", () => {
    const many = Array.from({ length: 20_000 }, (_, index) => `word${index}`);
    assert.deepEqual(searchWords(many.join(" ")), many.slice(0, 20));
    assert.deepEqual(searchWords(`${"。".repeat(100_000)}翻译`), []);
    assert.deepEqual(searchWords(`${" ".repeat(100_000)}翻译`), ["翻译"]);
  });
});

describe("an agent fits", () => {
  it("by id, name, alias, description, skill, tag and query", () => {
    const agents: readonly Partial<AgentRecord>[] = [
      { id: "invoice@desk" as AgentId },
      { displayName: "Invoice clerk" },
      { aliases: ["invoice"] },
      { card: { name: "Invoice" } },
      { card: { description: "Reads every invoice" } },
      { card: { skills: [{ id: "s", name: "Invoices", tags: [] }] } },
      { card: { skills: [{ id: "s", tags: ["invoice"] }] } },
      { skills: [{ id: "invoice" }] },
      { skills: [{ id: "s", description: "invoices" }] },
      { skills: [{ id: "s", tags: { invoice: "yes" } }] },
      { representativeQueries: ["check this invoice"] },
    ];
    for (const said of agents) assert.ok(fit(said, "invoices") > 0, JSON.stringify(said));
    assert.equal(fit({ displayName: "Weather" }, "invoices"), 0);
  });

  it("by any form of a word, but not by a part of another", () => {
    const said = { card: { description: "translation of contracts" } };
    for (const text of ["translate", "translator", "Translations", "contract"])
      assert.ok(fit(said, text) > 0, text);
    const glued = { card: { description: "node.js、snake_case，把PDF译成o'clock" } };
    for (const text of ["node.js", "snake_case", "pdf", "o'clock", "译成"])
      assert.ok(fit(glued, text) > 0, text);
    assert.equal(fit({ card: { description: "category theory" } }, "cat"), 0);
    assert.equal(fit({ card: { description: "revision" } }, "review"), 0);
    assert.ok(fit({ card: { description: "把合同译成英文" } }, "合同") > 0);
    assert.equal(fit({ card: { description: "天气" } }, "合同"), 0);
  });

  it("better by its name than by what it can do, and better by both words than by one", () => {
    const byName = fit({ displayName: "Translator" }, "translate");
    const bySkill = fit({ skills: [{ id: "translate" }] }, "translate");
    const byText = fit({ card: { description: "can translate" } }, "translate");
    assert.ok(byName > bySkill && bySkill > byText && byText > 0);
    const both = { skills: [{ id: "translate", description: "contracts" }] };
    assert.ok(
      fit(both, "translate contracts") > fit({ skills: [{ id: "translate" }] }, "translate contracts"),
    );
  });
});
