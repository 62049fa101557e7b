import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, type Verb, VERBS } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { denialOf, isAllowed, type Target } from "./authorize.ts";
import { actorName, agentOf, DEFAULT_TENANT, operatorOf, rootOperator } from "./principal.ts";

const KAMES = "kames@kamac" as AgentId;
const operator = operatorOf(DEFAULT_TENANT);
const lulu = agentOf(DEFAULT_TENANT, LULU);
const zhiwei = agentOf(DEFAULT_TENANT, ZHIWEI);

/** Whom an agent may act on: any agent, itself, those it takes part with, or none. */
type Extent = "anyone" | "itself" | "party" | "none";

/** The expected rules, written down independently. */
const EXTENTS: Readonly<Record<Verb, Extent>> = {
  "agents.read": "anyone",
  "agents.write": "itself",
  "capabilities.grant": "anyone",
  "capabilities.read": "anyone",
  "capabilities.revoke": "anyone",
  "events.read": "none",
  "journal.verify": "none",
  "keys.read": "none",
  "keys.write": "none",
  "mail.compact": "anyone",
  "mailbox.read": "itself",
  "mailbox.settle": "itself",
  "messages.read": "party",
  "messages.send": "itself",
  "metrics.read": "none",
  "push.read": "itself",
  "push.write": "itself",
  "queue.read": "itself",
  "repair.write": "anyone",
  "task-queue.read": "itself",
  "tasks.cancel": "itself",
  "tasks.list": "itself",
  "tasks.read": "party",
  "tasks.work": "itself",
  "tenants.read": "none",
  "tenants.write": "none",
  "threads.read": "none",
};

const TARGETS: readonly (readonly [name: string, target: Target, own: boolean, party: boolean])[] = [
  ["nothing in particular", {}, false, false],
  ["itself", { agentId: LULU }, true, false],
  ["another agent", { agentId: ZHIWEI }, false, false],
  ["what it takes part in", { parties: [ZHIWEI, LULU] }, false, true],
  ["what is between others", { parties: [ZHIWEI, KAMES] }, false, false],
  ["what no agent takes part in", { parties: [] }, false, false],
];

describe("who may do what", () => {
  it("has a rule for every verb, and this test knows them all", () => {
    assert.deepEqual(Object.keys(EXTENTS).toSorted(), [...VERBS].toSorted());
  });

  for (const verb of VERBS) {
    for (const [name, target, own, party] of TARGETS) {
      const extent = EXTENTS[verb];
      const allowed = extent === "anyone" || (extent === "itself" && own) || (extent === "party" && party);
      it(`${allowed ? "lets" : "does not let"} an agent ${verb} on ${name}`, () => {
        assert.equal(isAllowed(lulu, verb, target), allowed);
        const hidden = verb === "messages.read" || verb === "tasks.read";
        assert.equal(denialOf(lulu, verb, target).code, hidden ? "not_found" : "permission_denied");
      });
      it(`lets an operator ${verb} on ${name}`, () => assert.ok(isAllowed(operator, verb, target)));
    }

    it(`lets only the relay's operator ${verb} in another tenant`, () => {
      const inOther = { agentId: LULU, parties: [LULU], tenant: "别家" };
      assert.equal(isAllowed(lulu, verb, inOther), false);
      assert.equal(isAllowed(operator, verb, inOther), false);
      assert.equal(isAllowed(rootOperator(), verb, inOther), true);
      assert.equal(isAllowed(operatorOf("别家"), verb, inOther), true);
    });

    it(`does not let a key without that verb ${verb}, whatever its holder may do`, () => {
      const other = VERBS.find((each) => each !== verb) ?? verb;
      const target = { agentId: LULU, parties: [LULU] };
      for (const holder of [lulu, operator, rootOperator()]) {
        assert.equal(isAllowed({ ...holder, verbs: new Set([other]) }, verb, target), false);
        assert.equal(
          isAllowed({ ...holder, verbs: new Set([verb]) }, verb, target),
          isAllowed(holder, verb, target),
        );
      }
    });
  }

  it("depends on the caller, not on the request", () => {
    for (const verb of ["mailbox.read", "messages.send", "tasks.work"] as const) {
      assert.ok(isAllowed(zhiwei, verb, { agentId: ZHIWEI }));
      assert.equal(isAllowed(lulu, verb, { agentId: ZHIWEI }), false);
      assert.match(denialOf(lulu, verb, { agentId: ZHIWEI }).message, /lulu@kamac may not/);
    }
  });

  it("says what the act requires", () => {
    assert.match(
      denialOf(lulu, "keys.read", {}).message,
      /^lulu@kamac may not use keys\.read; it takes .* operator$/,
    );
    assert.match(
      denialOf(lulu, "mailbox.read", { agentId: ZHIWEI }).message,
      /for zhiwei\S+; .* itself only$/,
    );
    assert.match(
      denialOf(operator, "keys.write", { tenant: "别家" }).message,
      /in another tenant; the relay's operator may$/,
    );
    const few = { ...operator, verbs: new Set<Verb>(["events.read"]) };
    assert.match(
      denialOf(few, "keys.read", {}).message,
      /not be used for keys\.read; it is limited to events\.read$/,
    );
  });

  it("does not name another tenant", () => {
    assert.doesNotMatch(denialOf(operator, "keys.write", { tenant: "别家" }).message, /别家/);
  });

  it("does not name the owner of what it hides", () => {
    assert.doesNotMatch(denialOf(lulu, "tasks.read", { parties: [ZHIWEI] }).message, /zhiwei/);
  });
});

describe("the journal", () => {
  it("names agents by their id and operators as such", () => {
    assert.equal(actorName(lulu), LULU);
    assert.equal(actorName(operator), "operator");
    assert.equal(actorName({ ...operator, keyId: "key_1" }), "operator:key_1");
  });
});
