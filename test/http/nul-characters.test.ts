import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { a2aEndpoints, type Operation, operations, operationsIn } from "@a2a-relay/protocol";
import type { HttpAnswer } from "../../packages/relay/testing/http-relay.ts";
import { ExampleWorld } from "../support/example-world.ts";

/** PostgreSQL cannot keep U+0000, so every wire refuses it, whatever the store. */

const NUL = "知\0微";
const IN_PATH = encodeURIComponent(NUL);
const ALL = [...operationsIn(operations), ...operationsIn(a2aEndpoints)].filter(
  ({ answers, example }) => !(101 in answers) && Object.keys(example).length > 0,
);

/** Methods of A2A 1.0 and 0.1, with U+0000 where a caller chooses the text. */
const A2A_CALLS: readonly (readonly [method: string, params: object])[] = [
  ["GetTask", { id: NUL }],
  ["CancelTask", { id: NUL }],
  ["SubscribeToTask", { id: NUL }],
  ["ListTasks", { contextId: NUL }],
  ["ListTasks", { pageToken: Buffer.from(`5.${NUL}`).toString("base64url") }],
  ["GetTaskPushNotificationConfig", { taskId: NUL, id: "一" }],
  ["SendMessage", { message: aMessage({ messageId: NUL }) }],
  ["SendMessage", { message: aMessage({ taskId: NUL }) }],
  ["SendMessage", { message: aMessage({ contextId: NUL }) }],
  ["SendMessage", { message: aMessage({ metadata: { [NUL]: 1 } }) }],
  ["tasks/get", { id: NUL }],
  ["tasks/send", { id: NUL, message: { role: "user", parts: [{ type: "text", text: "好" }] } }],
];

function aMessage(said: object): object {
  return { messageId: "一", role: "ROLE_USER", parts: [{ text: "好" }], ...said };
}

describe("U+0000 in a request", () => {
  let world: ExampleWorld;
  before(async () => (world = await ExampleWorld.open()));
  after(() => world[Symbol.asyncDispose]());

  for (const operation of ALL) {
    it(`is refused by ${operation.name}, wherever it is`, async () => {
      await world.prepare();
      const { method, url, body } = world.asked(operation);
      for (const path of pathsOf(operation)) assertRefused(await world.relay.call(method, path, body), path);
      if (method === "GET") {
        for (const name of textsOf(operation)) {
          const asked = `${url.split("?")[0]}?${name}=${IN_PATH}`;
          assertRefused(await world.relay.call(method, asked), asked);
        }
      }
      for (const spoiled of withNul(body)) {
        assertRefused(await world.relay.call(method, url, spoiled), JSON.stringify(spoiled));
      }
    });
  }

  it("is refused in the name of a tenant", async () => {
    assertRefused(await world.relay.get(`/t/${IN_PATH}/agents`), "the tenant");
  });

  for (const [method, params] of A2A_CALLS) {
    it(`is refused by ${method} with ${JSON.stringify(params)}`, async () => {
      await world.prepare();
      const headers = method.includes("/") ? {} : { "a2a-version": "1.0" };
      const body = { jsonrpc: "2.0", id: 1, method, params };
      const answer = await world.relay.post(`/agents/${world.ids.agent}/a2a`, body, { headers });
      assert.equal(errorOf(answer)?.code, -32_602, answer.text);
    });
  }
});

function errorOf({ text }: HttpAnswer): { readonly code: unknown } | undefined {
  return (JSON.parse(text) as { readonly error?: { readonly code: unknown } }).error;
}

/** 404 where the text is the name of a method. */
function assertRefused(answer: HttpAnswer, what: string): void {
  const { status, text } = answer;
  const isNamed = status === 200 && typeof errorOf(answer)?.code === "number";
  const isUnknown = status === 404 && text.includes("UNIMPLEMENTED");
  assert.ok(status === 400 || isNamed || isUnknown, `${what}: ${status} ${text}`);
}

/** The paths of the example, each with U+0000 in another parameter. */
function pathsOf({ path, example: { params = {} } }: Operation): readonly string[] {
  return Object.keys(params).map((spoiled) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === spoiled ? IN_PATH : (params[name] ?? ""))),
  );
}

function textsOf({ query }: Operation): readonly string[] {
  const properties: Readonly<Record<string, { readonly type?: unknown }>> = query?.properties ?? {};
  return Object.keys(properties).filter((name) => properties[name]?.type === "string");
}

/** The value, each time with U+0000 as another one of its texts. */
function* withNul(value: unknown): Generator {
  if (typeof value === "string") yield NUL;
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    for (const spoiled of withNul(member)) {
      yield Array.isArray(value) ? value.with(Number(key), spoiled) : { ...value, [key]: spoiled };
    }
  }
}
