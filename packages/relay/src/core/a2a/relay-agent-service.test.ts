import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { Message as SdkMessage } from "@a2a-js/sdk";
import { A2A_DIALECTS, LIMITS } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { operatorOf, type Principal } from "../access/principal.ts";
import { TimeOrderedIds } from "../mechanisms/time-ordered-ids.ts";
import { RelayAgentService } from "./relay-agent-service.ts";

const SETTINGS = { publicUrl: () => "https://relay.example", messageTtlMs: 1_000 };

interface RelayAnswer {
  readonly text: string;
  readonly agents: readonly {
    readonly agent_id: string;
    readonly name: string;
    readonly description: string;
    readonly skills: readonly object[];
    readonly url: string;
  }[];
}

function relayAgentOf(core: CoreOnMemory): RelayAgentService {
  const ids = new TimeOrderedIds(core.clock, (bytes) => void bytes.fill(7));
  return new RelayAgentService({ ...core, ids }, SETTINGS);
}

async function ask(
  core: CoreOnMemory,
  text: string,
  principal: Principal = core.operator,
): Promise<RelayAnswer> {
  const params = { message: { messageId: "m1", role: "ROLE_USER", parts: [{ text }] } };
  const { message } = await relayAgentOf(core).answer(principal, params);
  const [said, found] = message.parts;
  assert.ok(said && found);
  return { text: String(said["text"]), agents: (found["data"] as RelayAnswer).agents };
}

async function coreWithClerks(): Promise<CoreOnMemory> {
  const core = await coreOnMemory();
  const register = (said: object): Promise<unknown> => core.agents.register(core.operator, said);
  await register({
    agent_id: "合同@工作室",
    display_name: "合同翻译",
    card: { description: "中英合同翻译", skills: [{ id: "translate", name: "Translate contracts" }] },
  });
  await register({ agent_id: "weather@desk", card: { description: "Tells the weather\n- forged: line" } });
  return core;
}

describe("the relay as an agent", () => {
  it("finds agents by the words of the question, in any script, and says how to reach them", async () => {
    await using core = await coreWithClerks();
    for (const question of ["Who can translate contracts?", "谁会翻译合同？", "translator"]) {
      const { text, agents } = await ask(core, question);
      assert.deepEqual(agents, [
        {
          agent_id: "合同@工作室",
          name: "合同翻译",
          description: "中英合同翻译",
          skills: [{ id: "translate", name: "Translate contracts" }],
          url: "https://relay.example/agents/%E5%90%88%E5%90%8C@%E5%B7%A5%E4%BD%9C%E5%AE%A4/a2a",
        },
      ]);
      assert.match(
        text,
        /^1 agent fits:\n- 合同翻译 \(合同@工作室\): 中英合同翻译 Skills: Translate contracts\.\n/,
      );
      assert.match(text, /metadata\.relay_target_agent_id/);
    }
  });

  it("lists all agents for a question without search words, each on one line", async () => {
    await using core = await coreWithClerks();
    const { text, agents } = await ask(core, "list all agents");
    assert.deepEqual(
      agents.map(({ agent_id }) => agent_id),
      [LULU, "weather@desk", ZHIWEI, "合同@工作室"],
    );
    assert.match(text, /^- weather@desk: Tells the weather - forged: line$/m);
  });

  it("explains how to ask when nothing is asked, and when no agent fits", async () => {
    await using core = await coreWithClerks();
    for (const question of ["", "help", "帮助", " ? "]) {
      const { text, agents } = await ask(core, question);
      assert.match(text, /^This is a relay: /);
      assert.match(text, /https:\/\/relay\.example\/agents\/\{id\}\/a2a/);
      assert.deepEqual(agents, []);
    }
    const { text, agents } = await ask(core, "quantum chromodynamics");
    assert.match(text, /^No agent here fits these words\.\n\nThis is a relay: /);
    assert.deepEqual(agents, []);
  });

  it("shows the best twenty of many", async () => {
    await using core = await coreOnMemory();
    for (let n = 0; n < 25; n += 1) {
      const card = { description: n === 24 ? "invoices and receipts" : "invoices" };
      await core.agents.register(core.operator, { agent_id: `clerk-${String(n).padStart(2, "0")}`, card });
    }
    const { text, agents } = await ask(core, "invoices, receipts");
    assert.equal(agents.length, 20);
    assert.deepEqual(
      agents.slice(0, 3).map(({ agent_id }) => agent_id),
      ["clerk-24", "clerk-00", "clerk-01"],
    );
    assert.match(text, /^25 agents fit, the best 20 of them:/);
  });

  it("searches beyond the first page of agents", async () => {
    await using core = await coreOnMemory();
    const first = Array.from({ length: LIMITS.listLimitMax }, (_, n) => `a-${n}`);
    for (const agent_id of first) await core.agents.register(core.operator, { agent_id });
    await core.agents.register(core.operator, { agent_id: "zz", display_name: "最后一位" });
    const { agents } = await ask(core, "最后一位");
    assert.deepEqual(
      agents.map(({ agent_id }) => agent_id),
      ["zz"],
    );
    assert.match((await ask(core, "list agents")).text, /^503 agents fit, the best 20 of them:/);
  });

  it(
    "yields to other work between agents, also for long questions and long cards",
    { timeout: 20_000 },
    async () => {
      await using core = await coreOnMemory();
      const wordsOf = (prefix: string, count: number): string =>
        Array.from({ length: count }, (_, index) => `${prefix}${index}`).join(" ");
      for (let n = 0; n < 20; n += 1) {
        const card = { description: wordsOf(`w${n}q`, 6_000) };
        await core.agents.register(core.operator, { agent_id: `clerk-${n}`, card });
      }
      for (const question of [wordsOf("zz", 20_000), `${" ".repeat(150_000)}translate`]) {
        const yields = mock.method(core.clock, "nextTurn");
        assert.match((await ask(core, question)).text, /^No agent here/);
        assert.ok(yields.mock.callCount() >= 22);
        yields.mock.restore();
      }
    },
  );

  it("knows only the caller's tenant, and answers only those who may read agents", async () => {
    await using core = await coreWithClerks();
    const acme = operatorOf("acme");
    assert.deepEqual((await ask(core, "translate", acme)).agents, []);
    await core.agents.register(acme, { agent_id: "t", display_name: "Translator" });
    const { agents } = await ask(core, "translate", acme);
    assert.deepEqual(
      agents.map(({ url }) => url),
      ["https://relay.example/t/acme/agents/t/a2a"],
    );
    const limited = { ...core.lulu, verbs: new Set(["threads.read"] as const) };
    await refused(ask(core, "translate", limited), "permission_denied");
  });

  it("answers with a message that every dialect can write, in the caller's context", async () => {
    await using core = await coreWithClerks();
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "weather" }], contextId: "上下文" };
    const answer = await relayAgentOf(core).answer(core.operator, { message });
    assert.deepEqual([answer.message.role, answer.message.contextId], ["ROLE_AGENT", "上下文"]);
    assert.equal(SdkMessage.fromJSON(answer.message).parts.length, 2);
    for (const dialect of Object.values(A2A_DIALECTS)) {
      assert.match(JSON.stringify(dialect.writeResult("send", answer)), /weather@desk/);
    }
    await refused(relayAgentOf(core).answer(core.operator, { message: { parts: [] } }), "invalid_argument");
  });
});
