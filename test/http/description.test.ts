import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { RELAY_ERROR_CODES } from "@a2a-relay/protocol";
import { type HttpRelay, openHttpRelay } from "../../packages/relay/testing/http-relay.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
}

interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

/** Every route that other programs rely on. */
const PROMISED = [
  "POST /agents/register",
  "POST /api/agents",
  "GET /agents",
  "GET /agents/{id}",
  "GET /agents/{id}/card",
  "GET /agents/{id}/.well-known/agent-card.json",
  "GET /agents/{id}/.well-known/agent.json",
  "GET /agents/{id}/.well-known/a2a-agent-card",
  "GET /.well-known/agent-card.json",
  "GET /.well-known/agent.json",
  "GET /.well-known/a2a-agent-card",
  "DELETE /agents/{id}",
  "POST /agents/{id}/heartbeat",
  "POST /messages",
  "POST /messages/batch",
  "GET /messages/{id}",
  "GET /mailbox/{agent_id}",
  "GET /mailbox/{agent_id}/stream",
  "GET /mailbox/{agent_id}/ws",
  "POST /mailbox/{agent_id}/ack",
  "POST /mailbox/{agent_id}/lease",
  "POST /mailbox/{agent_id}/renew",
  "POST /mailbox/{agent_id}/release",
  "POST /mailbox/{agent_id}/fail",
  "POST /tasks/{id}/status",
  "POST /tasks/{id}/artifacts",
  "POST /tasks/{id}/complete",
  "POST /tasks/{id}/fail",
  "POST /tasks/{id}/reject",
  "POST /tasks/{id}/cancel",
  "GET /tasks/{id}",
  "GET /tasks",
  "GET /tasks/{id}/tree",
  "GET /tasks/{id}/events",
  "GET /threads",
  "GET /threads/{id}",
  "GET /events",
  "GET /queue",
  "POST /repair",
  "POST /repair/retry-stale",
  "GET /journal/verify",
  "POST /a2a/tasks",
  "GET /a2a/tasks/next",
  "POST /a2a/tasks/next",
  "GET /a2a/tasks/recent",
  "POST /a2a/results",
  "GET /a2a/results/next",
  "POST /a2a/results/next",
  "POST /a2a/results/ack",
  "GET /a2a/results/recent",
  "GET /a2a/queue",
  "POST /a2a/repair",
  "POST /a2a/retry-stale",
  "POST /a2a/compact",
  "GET /health",
  "GET /ready",
  "GET /metrics",
  "GET /openapi.json",
  "GET /docs",
];

describe("the description of the API", () => {
  let relay: HttpRelay;
  let document: OpenApi;
  before(async () => {
    relay = await openHttpRelay();
    document = JSON.parse((await relay.get("/openapi.json")).text) as OpenApi;
  });
  after(() => relay[Symbol.asyncDispose]());

  function operations(): readonly (readonly [path: string, method: string, operation: Operation])[] {
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [path, method, operation] as const),
    );
  }

  it("lists every promised route", () => {
    const listed = operations().map(([path, method]) => `${method.toUpperCase()} ${path}`);
    assert.deepEqual(
      PROMISED.filter((route) => !listed.includes(route)),
      [],
    );
  });

  it("lists only routes that exist", async () => {
    for (const [path, method] of operations()) {
      const url = path.replaceAll(/\{\w+\}/g, "nothing");
      const { status, text } = await relay.call(method.toUpperCase(), url);
      const isMissing = status === 404 && /GET \/docs lists all/.test(text);
      assert.equal(isMissing, false, `${method} ${path}`);
    }
  });

  it("is an OpenAPI 3.1 document with all that one must have", () => {
    assert.match(document.openapi, /^3\.1\.\d$/);
    assert.equal(document.info.title, "a2a-relay");
    assert.match(document.info.version, /^\d+\.\d+\.\d+/);
    const ids = new Set<string>();
    for (const [path, method, operation] of operations()) {
      const where = `${method} ${path}`;
      assert.ok(path.startsWith("/") && ["get", "post", "delete"].includes(method), where);
      assert.ok(!ids.has(operation.operationId), `${where} has an id that another has`);
      ids.add(operation.operationId);
      assert.ok(operation.summary.length > 0, where);
      for (const tag of operation.tags)
        assert.ok(
          document.tags.some(({ name }) => name === tag),
          where,
        );
      for (const [status, { description }] of Object.entries(operation.responses)) {
        assert.match(status, /^(?:[1-5]\d\d|default)$/, where);
        assert.ok(description.length > 0, where);
      }
      assert.ok(
        Object.keys(operation.responses).some((status) => status.startsWith("2") || status === "101"),
        where,
      );
      for (const scheme of operation.security.flatMap((each) => Object.keys(each))) {
        assert.ok(scheme in document.components.securitySchemes, where);
      }
    }
  });

  it("declares each parameter of a path once, and no other", () => {
    for (const [path, method, { parameters }] of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = parameters.filter((parameter) => parameter.in === "path");
      assert.deepEqual(
        declared.map(({ name }) => name),
        inPath,
        `${method} ${path}`,
      );
      assert.ok(declared.every(({ required }) => required));
      const names = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
      assert.equal(new Set(names).size, names.length);
      for (const { schema } of parameters) assert.equal(typeof schema, "object");
    }
  });

  it("has no reference that leads nowhere", () => {
    const references: string[] = [];
    const collect = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      for (const [key, member] of Object.entries(value)) {
        if (key === "$ref" && typeof member === "string") references.push(member);
        else collect(member);
      }
    };
    collect(document);
    assert.ok(references.length > 0);
    for (const reference of new Set(references)) {
      assert.match(reference, /^#\//);
      let value: unknown = document;
      for (const key of reference.slice(2).split("/"))
        value = (value as Record<string, unknown> | undefined)?.[key];
      assert.equal(typeof value, "object", reference);
    }
  });

  it("describes every body that is read, as JSON, and every error by its codes", () => {
    const withBody = operations().filter(([, , { requestBody }]) => requestBody !== undefined);
    assert.ok(withBody.length >= 16);
    for (const [path, method, { requestBody }] of withBody) {
      assert.equal(method, "post");
      assert.deepEqual(Object.keys(requestBody?.content ?? {}), ["application/json"], path);
    }
    const text = JSON.stringify(document.components.schemas["Error"]);
    for (const code of RELAY_ERROR_CODES) assert.ok(text.includes(`"${code}"`), code);
    for (const [path, , { responses }] of operations()) assert.ok("default" in responses, path);
  });

  it("says which answers are streams, and how to go on with one", () => {
    const streams = operations().filter(([, , { responses }]) =>
      Object.keys(responses["200"]?.content ?? {}).includes("text/event-stream"),
    );
    assert.deepEqual(streams.map(([path]) => path).toSorted(), [
      "/a2a",
      "/agents/{agent_id}/a2a",
      "/agents/{agent_id}/a2a/{operation}",
      "/agents/{agent_id}/a2a/{operation}",
      "/agents/{agent_id}/a2a/{operation}",
      "/events",
      "/mailbox/{agent_id}/stream",
      "/tasks/{id}/events",
    ]);
    for (const [path, , { parameters }] of streams) {
      const names = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
      assert.ok(names.includes("header Last-Event-ID"), path);
      assert.equal(names.includes("query since"), !path.includes("a2a"), path);
    }
  });

  it("has a page for people: every route on it, nothing loaded from other hosts", async () => {
    const { status, headers, text } = await relay.get("/docs");
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
    for (const [path] of operations()) assert.ok(text.includes(`<code>${path}</code>`), path);
    assert.doesNotMatch(text, /<script|<link|<img|@import|url\(/i);
    assert.match(text, /idempotency_key/);
  });
});
