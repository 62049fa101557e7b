import assert from "node:assert/strict";
import { Then, When } from "@cucumber/cucumber";
import { userMessage, type WireAnswer } from "./a2a-scene.ts";
import type { RelayWorld } from "./relay-world.ts";

/** Clients that write A2A themselves, as each version of it has it, and cards as they are served. */

const SESSION = "茶馆-1";

When<RelayWorld>(
  "a client of A2A {word} asks {word} {string}",
  function (version: string, agent: string, text: string) {
    const said = { kind: "message", messageId: "m-1", role: "user", parts: [{ kind: "text", text }] };
    const [method, message] = version.startsWith("0.")
      ? (["message/send", said] as const)
      : (["SendMessage", userMessage(text)] as const);
    // Clients of 0.2 and 0.3 do not say which version they speak.
    const headers = version.startsWith("0.") ? {} : { "a2a-version": version };
    this.a2a.beginOnWire(rpc(this, agent, { method, params: { message } }, headers));
  },
);

When<RelayWorld>(
  "a client of A2A 0.1 gives {word} the task {word} {string}",
  function (agent: string, name: string, text: string) {
    const message = { role: "user", parts: [{ type: "text", text }] };
    const params = { id: name.replace(/:$/, ""), sessionId: SESSION, message };
    this.a2a.beginOnWire(rpc(this, agent, { method: "tasks/send", params }));
  },
);

When<RelayWorld>(
  "the client of A2A 0.1 asks {word} for the task {word}",
  function (agent: string, id: string) {
    // Younger versions have this method too, and only they have a header to say so.
    this.a2a.beginOnWire(rpc(this, agent, { method: "tasks/get", params: { id } }));
  },
);

Then<RelayWorld>(/^the client reads (\S+), with (\{.+\})$/, async function (state: string, part: string) {
  const { status } = await resultOf(this);
  assert.deepEqual([status.state, status.message?.parts], [state, [JSON.parse(part)]]);
});

Then<RelayWorld>("the client reads that {word} is {word}", async function (id: string, state: string) {
  const result = await resultOf(this);
  assert.deepEqual([result.id, result.sessionId, result.status.state], [id, SESSION, state]);
});

Then<RelayWorld>("the client is told that this version is not served", async function () {
  const { json } = await this.a2a.wireAnswer();
  const { code, data } = json["error"] as {
    readonly code: number;
    readonly data: readonly { readonly reason: string }[];
  };
  assert.deepEqual([code, data[0]?.reason], [-32009, "VERSION_NOT_SUPPORTED"]);
});

When<RelayWorld>("a caller without a key asks {word} over A2A for lulu's task", function (agent: string) {
  const params = { id: this.a2a.taskId };
  this.a2a.beginOnWire(rpc(this, agent, { method: "GetTask", params }));
});

Then<RelayWorld>("the relay answers {int}", async function (status: number) {
  assert.equal((await this.a2a.wireAnswer()).status, status);
});

When<RelayWorld>("a caller asks for {word}'s card at {word}", async function (agent: string, file: string) {
  await readCard(this, `/agents/${agent}/.well-known/${file}`);
});

Then<RelayWorld>(
  "it is a card of A2A 1.0 that leads to {word}'s address at the relay",
  async function (agent: string) {
    const { json } = await this.a2a.wireAnswer();
    assert.deepEqual((json["supportedInterfaces"] as readonly object[])[0], {
      url: await addressOf(this, agent),
      protocolBinding: "JSONRPC",
      protocolVersion: "1.0",
    });
    assert.equal(json["url"], undefined);
  },
);

Then<RelayWorld>(
  "it is a card of A2A 0.3 that leads to {word}'s address at the relay",
  async function (agent: string) {
    const { json } = await this.a2a.wireAnswer();
    const { url, protocolVersion, preferredTransport, supportedInterfaces } = json;
    assert.deepEqual(
      [url, protocolVersion, preferredTransport, supportedInterfaces],
      [await addressOf(this, agent), "0.3.0", "JSONRPC", undefined],
    );
  },
);

When<RelayWorld>("a caller who has that card asks for it again", async function () {
  const { headers } = await this.a2a.wireAnswer();
  const etag = headers.get("etag") ?? assert.fail("the card has no ETag");
  await readCard(this, this.a2a.cardPath, { "if-none-match": etag });
});

Then<RelayWorld>("the relay says that it has not changed", async function () {
  assert.equal((await this.a2a.wireAnswer()).status, 304);
});

async function addressOf({ client }: RelayWorld, agent: string): Promise<string> {
  return `${client.url}/agents/${(await client.agent(agent)).agent_id}/a2a`;
}

async function readCard(
  world: RelayWorld,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  world.a2a.cardPath = path;
  world.a2a.beginOnWire(answerOf(fetch(`${world.client.url}${path}`, { headers })));
  await world.a2a.wireAnswer();
}

function rpc(
  { client }: RelayWorld,
  agent: string,
  request: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<WireAnswer> {
  return answerOf(
    fetch(`${client.url}/agents/${agent}/a2a`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...request }),
    }),
  );
}

async function answerOf(call: Promise<Response>): Promise<WireAnswer> {
  const { status, headers, ...response } = await call.then(async (each) => ({
    status: each.status,
    headers: each.headers,
    text: await each.text(),
  }));
  const json = response.text === "" ? {} : (JSON.parse(response.text) as WireAnswer["json"]);
  return { status, headers, json };
}

interface TaskOnWire {
  readonly id: string;
  readonly sessionId?: string;
  readonly status: { readonly state: string; readonly message?: { readonly parts: readonly unknown[] } };
}

/** The task in the answer: 1.0 says that it is one, the others answer with the task itself. */
async function resultOf({ a2a }: RelayWorld): Promise<TaskOnWire> {
  const { json } = await a2a.wireAnswer();
  const result = json["result"] as TaskOnWire & { readonly task?: TaskOnWire };
  assert.ok(result, JSON.stringify(json));
  return result.task ?? result;
}
