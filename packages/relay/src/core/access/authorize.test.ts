import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { authorize, type Target, VERBS, type Verb } from "./authorize.ts";
import { actorName, agentOf, DEFAULT_TENANT, operatorOf } from "./principal.ts";

const KAMES = "kames@kamac" as AgentId;
const operator = operatorOf(DEFAULT_TENANT);
const lulu = agentOf(DEFAULT_TENANT, LULU);
const zhiwei = agentOf(DEFAULT_TENANT, ZHIWEI);

/** What an agent may do: to itself and others alike, to itself, as a party, or not at all. */
type Extent = "anyone" | "itself" | "party" | "nobody";

/** The rules, written down a second time. */
const EXTENTS: Readonly<Record<Verb, Extent>> = {
  "agents.read": "anyone",
  "agents.write": "itself",
  "events.read": "nobody",
  "journal.verify": "nobody",
  "mailbox.read": "itself",
  "mailbox.settle": "itself",
  "messages.read": "party",
  "messages.send": "itself",
  "metrics.read": "nobody",
  "queue.read": "nobody",
  "repair.write": "nobody",
  "tasks.cancel": "itself",
  "tasks.list": "itself",
  "tasks.read": "party",
  "tasks.work": "itself",
  "threads.read": "nobody",
};

const TARGETS: readonly (readonly [name: string, target: Target, own: boolean, party: boolean])[] = [
  ["nothing in particular", {}, false, false],
  ["itself", { agentId: LULU }, true, false],
  ["another agent", { agentId: ZHIWEI }, false, false],
  ["what it takes part in", { parties: [ZHIWEI, LULU] }, false, true],
  ["what is between others", { parties: [ZHIWEI, KAMES] }, false, false],
  ["what nobody takes part in", { parties: [] }, false, false],
];

describe("authorize", () => {
  it("has a rule for every verb, and this table knows them all", () => {
    assert.deepEqual(Object.keys(EXTENTS).toSorted(), [...VERBS].toSorted());
  });

  for (const verb of VERBS) {
    for (const [name, target, own, party] of TARGETS) {
      const extent = EXTENTS[verb];
      const allowed = extent === "anyone" || (extent === "itself" && own) || (extent === "party" && party);
      it(`${allowed ? "lets" : "does not let"} an agent ${verb} on ${name}`, async () => {
        if (allowed) return authorize(lulu, verb, target);
        const hidden = verb === "messages.read" || verb === "tasks.read";
        await refused(() => authorize(lulu, verb, target), hidden ? "not_found" : "permission_denied");
      });
      it(`lets an operator ${verb} on ${name}`, () => authorize(operator, verb, target));
    }
  }

  it("judges two agents by who they are, not by what they ask", async () => {
    for (const verb of ["mailbox.read", "messages.send", "tasks.work"] as const) {
      authorize(zhiwei, verb, { agentId: ZHIWEI });
      await refused(
        () => authorize(lulu, verb, { agentId: ZHIWEI }),
        "permission_denied",
        /lulu@kamac may not/,
      );
    }
  });

  it("does not say whose it is that is hidden", async () => {
    const error = await refused(() => authorize(lulu, "tasks.read", { parties: [ZHIWEI] }), "not_found");
    assert.doesNotMatch(error.message, /zhiwei/);
  });
});

describe("the journal", () => {
  it("names agents by their id and operators as such", () => {
    assert.equal(actorName(lulu), LULU);
    assert.equal(actorName(operator), "operator");
  });
});
