import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { AGENT_URL, type RemoteCore, remoteCore } from "../../../testing/fake-agent.ts";

type Members = Readonly<Record<string, unknown>>;

/** What the remote agent gets when an A2A caller sends to its mailbox here. */
async function sentOn(core: RemoteCore, params: Members): Promise<Members> {
  await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: AGENT_URL, push: "a2a" });
  const caller = { principal: core.operator, agentId: ZHIWEI, version: "1.0" } as const;
  const configuration = { returnImmediately: true, ...(params["configuration"] as Members | undefined) };
  const asked = { ...caller, extensions: [], idempotencyKey: undefined };
  await core.a2a.send(asked, { ...params, configuration }, {});
  assert.deepEqual(await core.push(undefined, ZHIWEI), ["delivered"]);
  return core.agent.calledFor("SendMessage").at(-1) ?? {};
}

function withoutOurs({ metadata, ...message }: Members): {
  readonly message: Members;
  readonly theirs: Members;
} {
  const { a2a_relay: ours, ...theirs } = metadata as Members;
  assert.equal((ours as Members)["from"], LULU);
  return { message, theirs };
}

describe("a message that came over A2A and is sent over A2A", () => {
  it("is the one that its caller wrote, except for its task, its context and what is for this relay only", async () => {
    await using core = await remoteCore();
    const sent = await sentOn(core, {
      message: {
        messageId: "客户端的",
        role: "ROLE_USER",
        parts: [{ text: "看" }],
        contextId: "这里的话题",
        metadata: { 色: "红", relay_target_agent_id: ZHIWEI },
        extensions: ["urn:x"],
        referenceTaskIds: ["早先的"],
        将来的: { 深: [1, "二"] },
      },
      metadata: { 优先: 1, sender_agent_id: LULU, relay_target_agent_id: ZHIWEI },
      configuration: { acceptedOutputModes: ["text/markdown"], returnImmediately: true },
    });
    const { message, theirs } = withoutOurs(sent["message"] as Members);
    assert.deepEqual(message, {
      messageId: "客户端的",
      role: "ROLE_USER",
      parts: [{ text: "看" }],
      extensions: ["urn:x"],
      referenceTaskIds: ["早先的"],
      将来的: { 深: [1, "二"] },
    });
    assert.deepEqual(theirs, { 色: "红" });
    assert.deepEqual(sent["metadata"], { 优先: 1 });
    const configuration = {
      returnImmediately: true,
      historyLength: 20,
      acceptedOutputModes: ["text/markdown"],
    };
    assert.deepEqual(sent["configuration"], configuration);
  });

  it("does not name the target agent to the next relay", async () => {
    await using core = await remoteCore();
    const metadata = { sender_agent_id: LULU };
    const sent = await sentOn(core, {
      message: { messageId: "一", role: "ROLE_USER", parts: [{ text: "看" }], metadata },
    });
    assert.deepEqual(withoutOurs(sent["message"] as Members).theirs, {});
    assert.equal(Object.hasOwn(sent, "metadata"), false);
  });

  it("has the message's id where its caller gave it none", async () => {
    await using core = await remoteCore();
    const { messageId } = await core.ask({ a2a_message: { extensions: ["urn:x"] } });
    await core.push();
    const [sent] = core.agent.calledFor("SendMessage");
    const { message } = withoutOurs(sent?.["message"] as Members);
    assert.deepEqual([message["messageId"], message["extensions"]], [messageId, ["urn:x"]]);
  });
});

describe("a message that is sent over A2A", () => {
  it("has only the metadata of the relay", async () => {
    await using core = await remoteCore();
    const { messageId } = await core.ask();
    await core.push();
    const [sent] = core.agent.calledFor("SendMessage");
    assert.deepEqual(Object.keys(sent ?? {}).toSorted(), ["configuration", "message"]);
    const { message, theirs } = withoutOurs(sent?.["message"] as Members);
    assert.deepEqual([message, theirs], [{ messageId, role: "ROLE_USER", parts: [{ text: "帮个忙" }] }, {}]);
  });
});
