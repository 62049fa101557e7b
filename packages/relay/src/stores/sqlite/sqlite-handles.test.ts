import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { alternating } from "../../../testing/alternating.ts";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { refused } from "../../../testing/refusal.ts";
import { describeRelayStore } from "../../../testing/relay-store.contract.ts";
import {
  aNewAgent,
  aSend,
  clashOf,
  commit,
  readIds,
  send,
  settle,
  TENANT,
} from "../../../testing/store-builders.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { agentsNamed } from "../../core/rules/agent-names.ts";
import { openSqliteHandles } from "./sqlite-relay-store.ts";

interface TwoHandles extends AsyncDisposable {
  readonly one: RelayStore;
  readonly two: RelayStore;
}

async function openTwo(): Promise<TwoHandles> {
  const stack = new AsyncDisposableStack();
  const options = { path: ":memory:", checkpointPages: 1_000, onFatal: () => undefined };
  const newHandle = await openSqliteHandles(options);
  const [one, two] = [newHandle(), newHandle()];
  return { one: stack.use(one), two: stack.use(two), [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describeRelayStore("SQLite, two handles", async () => {
  const { one, two } = await openTwo();
  return alternating(one, two);
});

describe("two handles on one SQLite database", () => {
  it("find an agent by the names that the other gave it", async () => {
    await using both = await openTwo();
    const { one, two } = both;
    const agent = aNewAgent({ aliases: ["别名"] });
    assert.deepEqual(await agentsNamed(two, TENANT, "别名"), []);
    await commit(one, { agents: [agent] });
    assert.deepEqual(await agentsNamed(two, TENANT, "别名"), [agent.id]);
    assert.deepEqual(await agentsNamed(one, TENANT, "别名"), [agent.id]);
    await commit(two, { agents: [{ ...agent, aliases: ["新名"], version: 1 }] });
    assert.deepEqual(await agentsNamed(one, TENANT, "别名"), []);
  });

  it("forget the names of a registration that failed in the same batch", async () => {
    await using both = await openTwo();
    const { one, two } = both;
    const agent = aNewAgent();
    const sent = aSend();
    const [message] = sent.messages;
    await commit(one, sent);
    // The second commit reads the agent's name while the first is undone for its message id.
    const [clash, missing] = await Promise.all([
      clashOf(one, { agents: [agent], messages: [message], room: [{ agentId: agent.id, openMax: 9 }] }),
      clashOf(two, { room: [{ agentId: agent.id, openMax: 9 }] }),
    ]);
    assert.deepEqual([clash, missing], ["message_id", "agent"]);
    assert.deepEqual(await agentsNamed(one, TENANT, agent.id), []);
  });

  it("see an agent that the other has seen", async () => {
    await using both = await openTwo();
    const { one, two } = both;
    const agent = aNewAgent();
    await commit(one, { agents: [agent] });
    await one.agents.touch(TENANT, agent.id, NOON_MS);
    assert.equal((await two.agents.get(TENANT, agent.id))?.lastSeenAtMs, NOON_MS);
  });

  it("continue a scan of retention where the other ended", async () => {
    await using both = await openTwo();
    const { one, two } = both;
    const [old, young] = [await send(one), await send(one)];
    await settle(one, young.id);
    const found = async (store: RelayStore): Promise<readonly string[]> =>
      (await store.retention.messages(TENANT, NOON_MS + 1_000, 1)).map(({ messageId }) => messageId);
    assert.deepEqual(await found(one), [young.id]);
    await settle(one, old.id);
    assert.deepEqual(await found(two), [young.id]);
    await two.retention.retireMessages(TENANT, [young.id], NOON_MS);
    assert.deepEqual(await found(one), [old.id]);
  });

  it("stay open until both are closed, while the closed one refuses every act", async () => {
    await using both = await openTwo();
    const { one, two } = both;
    await one[Symbol.asyncDispose]();
    await one[Symbol.asyncDispose]();
    const { id } = await send(two);
    assert.deepEqual(await readIds(two), [id]);
    await refused(one.commit(aSend()), "unavailable", /closed/);
    await refused(one.deliveries.get(TENANT, [id]), "unavailable", /closed/);
    await two[Symbol.asyncDispose]();
    await refused(two.deliveries.get(TENANT, [id]), "unavailable", /closed/);
  });
});
