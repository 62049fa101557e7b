import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { a2aEndpoints, errorsOf, type Operation, operations, operationsIn } from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { ExampleWorld } from "../support/example-world.ts";

const ALL = [...operationsIn(operations), ...operationsIn(a2aEndpoints)];
const BODILESS = ["101", "204", "304"];

describe("the example of each operation", () => {
  let world: ExampleWorld;
  before(async () => (world = await ExampleWorld.open()));
  after(() => world[Symbol.asyncDispose]());

  for (const operation of ALL) {
    const isSocket = 101 in operation.answers;
    it(`${operation.name} gets the answer that its entry describes`, async () => {
      await world.prepare();
      if (isSocket) return opensSocket(world, operation);
      if (operation.streams !== "always") await assertAnswer(world, operation);
      // The A2A examples ask for one answer.
      if (operation.streams !== undefined && operation.tag !== "A2A") await assertStream(world, operation);
    });
  }
});

describe("the OpenAPI document", () => {
  it("describes the body of every answer by a schema, and every operation of the table", async () => {
    await using world = await ExampleWorld.open();
    const { paths } = (await world.relay.get("/openapi.json")).json as unknown as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
    };
    const described = Object.values(paths).flatMap((methods) => Object.values(methods));
    for (const { operationId, responses } of described) {
      for (const [status, { content }] of Object.entries(responses)) {
        if (BODILESS.includes(status)) continue;
        const schemas = Object.values(content ?? {}).map(({ schema }) => schema);
        assert.ok(schemas.length > 0 && !schemas.includes(undefined), `${operationId} ${status}`);
      }
    }
    assert.deepEqual(
      described.map(({ operationId }) => operationId).toSorted(),
      ALL.map(({ name }) => name).toSorted(),
    );
  });
});

describe("an operation", () => {
  it("lists no error twice, and none that another part of its entry implies", () => {
    for (const operation of ALL) {
      const implied = errorsOf({ ...operation, errors: [] });
      const { errors, name } = operation;
      assert.equal(new Set(errors).size, errors.length, name);
      assert.deepEqual(
        errors.filter((code) => implied.includes(code)),
        [],
        name,
      );
    }
  });

  it("names members of its query and of its answer for paging", () => {
    for (const { name, paging, query, answers } of ALL) {
      if (paging === undefined) continue;
      const answer = answers[200]?.schema as { readonly properties: object } | undefined;
      assert.ok(paging.query in (query?.properties ?? {}), name);
      assert.ok(paging.next in (answer?.properties ?? {}), name);
      assert.ok(paging.items in (answer?.properties ?? {}), name);
    }
  });

  it("has an example for each of its parameters", () => {
    for (const { name, path, example } of ALL) {
      const params = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
      assert.deepEqual(Object.keys(example.params ?? {}), params, name);
    }
  });
});

interface Described {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: object }>> }>
  >;
}

async function assertAnswer(world: ExampleWorld, operation: Operation): Promise<void> {
  const { status, headers, text } = await world.send(operation);
  const { schema, mediaType = "application/json" } = operation.answers[status] ?? {};
  assert.ok(schema, `${status}: ${text}`);
  assert.equal(headers["content-type"]?.split(";")[0], mediaType);
  if (mediaType !== "application/json") return;
  const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
  assertValid(schema, body);
  // An empty list would prove nothing about its items.
  if (operation.paging !== undefined) assert.notDeepEqual(body[operation.paging.items], []);
}

async function assertStream(world: ExampleWorld, operation: Operation): Promise<void> {
  const { status, text } = await world.send(operation, { headers: { accept: "text/event-stream" } });
  assert.equal(status, 200, text);
  const data = /^data: ?(.*)$/m.exec(text)?.[1];
  assert.ok(data !== undefined && operation.event !== undefined, text);
  assertValid(operation.event, JSON.parse(data));
}

async function opensSocket(world: ExampleWorld, operation: Operation): Promise<void> {
  const socket = new WebSocket(world.relay.url.replace("http", "ws") + world.asked(operation).url);
  await once(socket, "open");
  socket.close();
  await once(socket, "close");
}

/** Answers may have further members for the sake of newer relays; here they may not, so that schemas are complete. */
function assertValid(schema: TSchema, value: unknown): void {
  const compiled = Compile(closed(schema) as TSchema);
  assert.ok(compiled.Check(value), JSON.stringify({ errors: compiled.Errors(value), value }, undefined, 2));
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const members = Object.entries(schema).map(([key, value]) => [key, closed(value)]);
  const isOpenObject = "properties" in schema && !("additionalProperties" in schema);
  return Object.fromEntries(isOpenObject ? [...members, ["additionalProperties", false]] : members);
}
