import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as sdk from "@a2a-js/sdk";
import {
  LegacyJsonRpcTransport,
  LegacyRestTransport,
  parseLegacyAgentCard,
} from "@a2a-js/sdk/compat/v0_3/client";
import { CARD, EVENTS, MESSAGE, PUSH_CONFIG, SEND_PARAMS, TASK } from "../../testing/a2a-samples.ts";
import type { A2aOperation } from "./a2a-dialect.ts";
import type { A2aMessage, A2aStreamResponse, A2aTask } from "./a2a-json.ts";
import { withoutMembers } from "./json-members.ts";
import { V03_DIALECT } from "./v03-dialect.ts";
import { V03_REST_DIALECT } from "./v03-rest-dialect.ts";
import { V1_DIALECT } from "./v1-dialect.ts";

type Json = Readonly<Record<string, unknown>>;

/** The SDK drops what it does not know, and data that is null. */
const message: A2aMessage = known({
  ...MESSAGE,
  parts: MESSAGE.parts.filter(({ data }) => data !== null).map(known),
});
const task: A2aTask = { ...TASK, history: [message] };
const params = { ...SEND_PARAMS, message };

describe("the official SDK", () => {
  it("reads our 1.0 whole", () => {
    const written = V1_DIALECT.writeResult("get", task);
    assert.deepEqual(sdk.Task.toJSON(sdk.Task.fromJSON(written)), task);
    const asked = sdk.SendMessageRequest.fromJSON(V1_DIALECT.writeParams("send", params));
    const { returnImmediately: _, ...configuration } = params.configuration;
    assert.deepEqual(sdk.SendMessageRequest.toJSON(asked), { ...params, configuration });
    const config = V1_DIALECT.writeResult("push-get", PUSH_CONFIG);
    assert.deepEqual(
      sdk.TaskPushNotificationConfig.toJSON(sdk.TaskPushNotificationConfig.fromJSON(config)),
      PUSH_CONFIG,
    );
    for (const event of events()) {
      const sent = V1_DIALECT.writeEvent(event, { isFinal: false });
      assert.deepEqual(sdk.StreamResponse.toJSON(sdk.StreamResponse.fromJSON(sent)), event);
    }
  });

  it("reads our cards of 1.0 and of 0.3", () => {
    const card = sdk.AgentCard.toJSON(sdk.AgentCard.fromJSON(V1_DIALECT.writeCard(CARD))) as Json;
    const skills = [{ ...(CARD["skills"] as readonly object[])[0] }];
    assert.deepEqual(withoutDefaults(card), withoutDefaults({ ...CARD, skills }));
    const older = parseLegacyAgentCard(V03_DIALECT.writeCard(CARD));
    const back = V1_DIALECT.readCard(V03_DIALECT.writeCard(CARD));
    const expected = { ...back, supportedInterfaces: withVersion(back, "0.3.0") };
    assert.deepEqual(withoutDefaults(sdk.AgentCard.toJSON(older) as Json), withoutDefaults(expected));
  });

  for (const [name, dialect, Transport] of [
    ["JSON-RPC", V03_DIALECT, LegacyJsonRpcTransport],
    ["REST", V03_REST_DIALECT, LegacyRestTransport],
  ] as const) {
    const isRest = name === "REST";
    const meant = isRest ? withoutNames : (value: unknown) => value;

    it(`reads our answers of 0.3 over ${name}`, async () => {
      const client = (operation: A2aOperation, result: Json) =>
        new Transport({
          endpoint: "https://relay.example",
          fetchImpl: answering(isRest, dialect.writeResult(operation, result)),
        });
      const got = await client("get", task).getTask({ tenant: "", id: "t-1" });
      assert.deepEqual(sdk.Task.toJSON(got), meant(task));
      const sent = await client("send", { task }).sendMessage(sdk.SendMessageRequest.fromJSON(params));
      assert.deepEqual(sdk.Task.toJSON(sent as sdk.Task), meant(task));
      const configs = await client("push-list", { configs: [PUSH_CONFIG] }).listTaskPushNotificationConfig(
        sdk.ListTaskPushNotificationConfigsRequest.fromJSON({ taskId: "t-1" }),
      );
      assert.deepEqual(
        configs.configs.map((one) => sdk.TaskPushNotificationConfig.toJSON(one)),
        [PUSH_CONFIG],
      );
      const card = await client("extended-card", CARD).getExtendedAgentCard({ tenant: "" });
      assert.deepEqual(Object.keys(card.securitySchemes), Object.keys(CARD["securitySchemes"] as object));
    });

    it(`reads our events of 0.3 over ${name}`, async () => {
      for (const event of events()) {
        const fetchImpl = streaming(isRest, dialect.writeEvent(event, { isFinal: true }));
        const client = new Transport({ endpoint: "https://relay.example", fetchImpl });
        const stream = client.resubscribeTask({ tenant: "", id: "t-1" });
        const read: unknown[] = [];
        for await (const one of stream) read.push(sdk.StreamResponse.toJSON(one));
        assert.deepEqual(withoutAppend(read, isRest), withoutAppend([meant(event)], isRest));
      }
    });

    it(`asks over ${name} what we read as it was meant`, async () => {
      const bodies: unknown[] = [];
      const fetchImpl = answering(isRest, dialect.writeResult("send", { task }), bodies);
      const client = new Transport({ endpoint: "https://relay.example", fetchImpl });
      await client.sendMessage(sdk.SendMessageRequest.fromJSON(params));
      const { tenant: _, ...asked } = dialect.readParams("send", bodies[0]);
      const { tenant: _tenant, ...expected } = meant(params) as Json;
      assert.deepEqual(asked, expected);
    });
  }
});

function known<Value extends Json>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !name.startsWith("x-"))) as Value;
}

function events(): readonly A2aStreamResponse[] {
  return [{ task }, ...Object.values(EVENTS).map(([event]) => event)].filter((event) => event.task !== TASK);
}

/** Answers every request, and keeps what was asked. */
function answering(isRest: boolean, result: unknown, bodies: unknown[] = []): typeof fetch {
  return (_url, init) => {
    const request = bodyOf(init);
    bodies.push(isRest ? request : request["params"]);
    const body = isRest ? result : { jsonrpc: "2.0", id: request["id"], result };
    return Promise.resolve(Response.json(body));
  };
}

function streaming(isRest: boolean, event: unknown): typeof fetch {
  return (_url, init) => {
    const body = isRest ? event : { jsonrpc: "2.0", id: bodyOf(init)["id"], result: event };
    const headers = { "content-type": "text/event-stream" };
    return Promise.resolve(new Response(`data: ${JSON.stringify(body)}\n\n`, { headers }));
  };
}

function bodyOf(init: RequestInit | undefined): Json {
  return JSON.parse(typeof init?.body === "string" ? init.body : "{}") as Json;
}

/** The SDK's protocol buffers of 0.3 have no member for these, nor for the metadata of wrapped data. */
function withoutNames(value: unknown): unknown {
  const lost = ["filename", "referenceTaskIds"];
  return JSON.parse(
    JSON.stringify(value, (name, one: unknown) => {
      if (lost.includes(name)) return undefined;
      if (name === "data" && Array.isArray(one)) return { value: one as unknown };
      if (name === "parts") return (one as readonly Json[]).map((part) => withoutMembers(part, "metadata"));
      if (name === "artifacts")
        return (one as readonly Json[]).map((made) => withoutMembers(made, "extensions"));
      return one;
    }),
  );
}

/** Its reader of 0.3 over REST forgets whether a piece is added. */
function withoutAppend(read: readonly unknown[], isRest: boolean): unknown {
  if (!isRest) return read;
  return JSON.parse(JSON.stringify(read, (name, one: unknown) => (name === "append" ? undefined : one)));
}

/** ProtoJSON leaves out what is empty or false. */
function withoutDefaults(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_name, one: unknown) => {
      const isEmptyList = Array.isArray(one) && one.length === 0;
      return one === "" || one === false || isEmptyList ? undefined : one;
    }),
  );
}

function withVersion(card: Json, protocolVersion: string): readonly Json[] {
  const [main, ...rest] = card["supportedInterfaces"] as readonly Json[];
  return [{ ...main, protocolVersion }, ...rest];
}
