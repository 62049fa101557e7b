import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { type GatedCore, gatedCore, KAMES } from "../../../testing/gated-core.ts";
import { outcomesOf } from "../../../testing/outcomes.ts";
import { refused } from "../../../testing/refusal.ts";

const SEND = `a2a.send.${ZHIWEI}`;
const RECV = `a2a.recv.${LULU}`;
const AT_ONCE = 50;

/** Lulu may ask zhiwei `max_uses` times. */
async function limited(max_uses: number): Promise<{ readonly core: GatedCore; readonly id: string }> {
  const core = await gatedCore();
  await core.grant(ZHIWEI, RECV);
  const { id } = await core.grant(LULU, SEND, { scope: { max_uses } });
  return { core, id };
}

/** How many were accepted, and the codes of the refusals. */
async function tally(
  acts: readonly Promise<unknown>[],
): Promise<{ readonly accepted: number; readonly refusals: ReadonlySet<string> }> {
  const outcomes = await Promise.allSettled(acts);
  const refusals = outcomes
    .filter((outcome) => outcome.status === "rejected")
    .map((outcome) => RelayError.from(outcome.reason).code);
  return { accepted: acts.length - refusals.length, refusals: new Set(refusals) };
}

describe("a limited capability", () => {
  it("is spent use by use, and then refused with its number of uses", async () => {
    const { core, id } = await limited(2);
    await using _ = core;
    await core.ask();
    assert.equal((await core.row(id)).used, 1);
    await core.ask();
    await refused(core.ask(), "permission_denied", new RegExp(`${id} is spent: 2 of 2 uses`));
    const { grants } = await core.capabilities.usage(core.lulu, {});
    assert.deepEqual(
      grants.map(({ budget, effective }) => [budget, effective]),
      [[{ max_uses: 2, used: 2, remaining: 0 }, false]],
    );
  });

  it("is not spent by an act that is refused for another reason", async () => {
    const { core, id } = await limited(1);
    await using _ = core;
    await refused(core.ask({ deadline_ms: 1 }), "invalid_argument");
    assert.equal((await core.row(id)).used, 0);
    await core.ask();
  });

  it("is not spent by the same message twice", async () => {
    const { core, id } = await limited(1);
    await using _ = core;
    const first = await core.ask({ idempotency_key: "k1" });
    const second = await core.ask({ idempotency_key: "k1" });
    assert.deepEqual([second.created, second.receipt], [false, first.receipt]);
    assert.equal((await core.row(id)).used, 1);
  });

  it("is not spent while the holder has an unlimited one", async () => {
    const { core, id } = await limited(1);
    await using _ = core;
    await core.grant(LULU, SEND);
    await core.ask();
    await core.ask();
    assert.equal((await core.row(id)).used, 0);
  });

  it(`is never overspent by ${AT_ONCE} at once, and fully spent`, async () => {
    const { core, id } = await limited(30);
    await using _ = core;
    const acts = Array.from({ length: AT_ONCE }, (__, index) => core.ask({ body: `第 ${index} 个` }));
    const { accepted, refusals } = await tally(acts);
    assert.deepEqual([accepted, [...refusals]], [30, ["permission_denied"]]);
    assert.equal((await core.row(id)).used, 30);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 30);
  });

  it(`is neither overspent nor left over by ${AT_ONCE} at once on two relays`, async () => {
    const { core, id } = await limited(30);
    await using _ = core;
    const relays = [core, core.beside()];
    const ask = { to: ZHIWEI, type: "request", body: "帮我看看" };
    const acts = Array.from({ length: AT_ONCE / 2 }, () =>
      relays.map(({ messages }) => messages.send(core.lulu, ask)),
    ).flat();
    const { accepted, refusals } = await tally(acts);
    assert.deepEqual([accepted, [...refusals]], [30, ["permission_denied"]]);
    assert.equal((await core.row(id)).used, 30);
  });

  it("is enough for as many concurrent requests as it has uses", async () => {
    const { core } = await limited(AT_ONCE);
    await using _ = core;
    const { accepted } = await tally(Array.from({ length: AT_ONCE }, () => core.ask()));
    assert.equal(accepted, AT_ONCE);
  });

  it("of a recipient is shared by all concurrent requests", async () => {
    await using core = await gatedCore();
    await core.grant(LULU, SEND);
    await core.grant(ZHIWEI, RECV, { scope: { max_uses: 3 } });
    const { accepted } = await tally(Array.from({ length: 10 }, () => core.ask()));
    assert.equal(accepted, 3);
    const error = await refused(core.ask(), "permission_denied", /recipient has not granted/);
    // The sender does not learn how many uses the recipient has left.
    assert.doesNotMatch(error.message, /spent|cap_/);
  });

  it("to answer is enough for as many concurrent tasks as it has uses", async () => {
    await using core = await gatedCore();
    await core.letAsk();
    const tasks: string[] = [];
    for (let index = 0; index < AT_ONCE; index += 1) tasks.push((await core.ask()).receipt.task_id ?? "");
    await core.grant(ZHIWEI, `a2a.respond.${LULU}`, { scope: { max_uses: AT_ONCE } });
    const { accepted } = await tally(tasks.map((id) => core.tasks.complete(core.zhiwei, id, {})));
    assert.equal(accepted, AT_ONCE);
  });

  it("to answer is not overspent by many concurrent tasks", async () => {
    await using core = await gatedCore();
    await core.letAsk();
    const tasks: string[] = [];
    for (let index = 0; index < 30; index += 1) tasks.push((await core.ask()).receipt.task_id ?? "");
    await core.grant(ZHIWEI, `a2a.respond.${LULU}`, { scope: { max_uses: 25 } });
    const { accepted, refusals } = await tally(tasks.map((id) => core.tasks.complete(core.zhiwei, id, {})));
    assert.deepEqual([accepted, [...refusals]], [25, ["permission_denied"]]);
  });
});

describe("a limited capability in a batch", () => {
  const messages = (count: number): readonly object[] =>
    Array.from({ length: count }, (_, index) => ({ to: ZHIWEI, type: "request", body: `第 ${index} 个` }));

  it("admits as many messages as it has uses", async () => {
    const { core, id } = await limited(3);
    await using _ = core;
    const results = await core.messages.sendBatch(core.lulu, { messages: messages(6) });
    assert.deepEqual(outcomesOf(results), [
      "created",
      "created",
      "created",
      "permission_denied",
      "permission_denied",
      "permission_denied",
    ]);
    assert.equal((await core.row(id)).used, 3);
  });

  it("cannot be used twice in an atomic batch, which is refused", async () => {
    const { core, id } = await limited(9);
    await using _ = core;
    const batch = { messages: messages(2), atomic: true };
    await refused(
      core.messages.sendBatch(core.lulu, batch),
      "conflict",
      new RegExp(`the same limited capability ${id}; nothing was sent`),
    );
    assert.equal((await core.row(id)).used, 0);
    await core.messages.sendBatch(core.lulu, { ...batch, messages: messages(1) });
    await core.grant(LULU, SEND);
    await core.messages.sendBatch(core.lulu, batch);
  });
});

describe("two agents that spend one delegated capability", () => {
  it("share the uses that the parent has left", async () => {
    await using core = await gatedCore();
    const scope = { delegable: true, max_uses: 10 };
    const parent = await core.grant(LULU, SEND, { scope });
    await core.grant(ZHIWEI, RECV);
    await core.grant(ZHIWEI, `a2a.recv.${KAMES}`);
    await core.grant(KAMES, SEND, { by: core.lulu, scope: { max_uses: 8 } });
    const ask = (): Promise<unknown> =>
      core.messages.send(core.kames, { to: ZHIWEI, type: "request", body: "好" });
    const acts = Array.from({ length: 12 }, () => [core.ask(), ask()]).flat();
    const { accepted } = await tally(acts);
    assert.equal(accepted, 10);
    assert.equal((await core.row(parent.id)).used, 10);
  });
});
