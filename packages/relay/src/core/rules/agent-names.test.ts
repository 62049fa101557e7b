import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { NamedAgent } from "../ports/agents.ts";
import { meant } from "./agent-names.ts";

function name(agentId: string, kind: NamedAgent["kind"], isRemoved = false): NamedAgent {
  return { agentId: agentId as AgentId, kind, isRemoved };
}

describe("a name", () => {
  it("means the agent with this id or alias, whatever others display", () => {
    assert.deepEqual(meant([name("a@host", "id"), name("b@host", "display_name")]), ["a@host"]);
    assert.deepEqual(meant([name("知微", "alias"), name("b@host", "display_name")]), ["知微"]);
  });

  it("means all agents that display it where it is no id and no alias", () => {
    assert.deepEqual(meant([name("a", "display_name"), name("b", "display_name")]), ["a", "b"]);
  });

  it("means no agent where it is the id of a removed one", () => {
    assert.deepEqual(meant([name("a@host", "id", true), name("b@host", "display_name")]), []);
  });
});
