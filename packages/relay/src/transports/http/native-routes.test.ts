import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { docsPage } from "./docs-page.ts";
import { HttpMetrics } from "./http-metrics.ts";
import { createHttpServer, nativeRoutes } from "./http-server.ts";
import { urlOf } from "./known-request.ts";
import { openApiDocument } from "./openapi.ts";
import { ReusedMemory } from "./reused-memory.ts";
import type { Route } from "./route.ts";

const ABOUT = { version: "1.2.3", publicUrl: () => "http://relay.test", cardDialect: "1.0" } as const;

function routesOf(core: CoreOnMemory): readonly Route[] {
  return nativeRoutes(
    core,
    { metrics: new HttpMetrics(async () => new Map()), memory: new ReusedMemory() },
    ABOUT,
  );
}

function serverOf(core: CoreOnMemory, memory = new ReusedMemory()): ReturnType<typeof createHttpServer> {
  return createHttpServer(
    {
      core,
      authenticator: { authenticate: async () => core.operator },
      openDeliveries: async () => new Map(),
      log: { error: (about) => assert.fail(JSON.stringify(about)) },
      stopping: new AbortController().signal,
      memory,
    },
    { ...ABOUT, hosts: [], allowedOrigins: [], heartbeatMs: 15_000, streamStallMs: 30_000 },
  );
}

describe("the routes", () => {
  it("are all mounted, and nothing else is", async () => {
    await using core = await coreOnMemory();
    const app = serverOf(core);
    await app.ready();
    const routes = routesOf(core);
    for (const route of routes) {
      const { method, path } = route;
      assert.ok(app.hasRoute({ method, url: urlOf(route) }), `${method} ${path}`);
    }
    const mounted = [...app.printRoutes({ commonPrefix: false }).matchAll(/\(([A-Z, ]+)\)/g)]
      .flatMap((match) => (match[1] ?? "").split(", "))
      .filter((method) => method !== "HEAD");
    assert.equal(mounted.length, routes.length);
    await app.close();
  });

  it("are each described once, in the document and on the page", async () => {
    await using core = await coreOnMemory();
    const routes = routesOf(core);
    const { paths } = openApiDocument(routes, "1.2.3", "http://relay.test") as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
    };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(described.toSorted(), routes.map(({ method, path }) => `${method} ${path}`).toSorted());
    const page = docsPage(routes, "1.2.3");
    for (const { path, summary } of routes) {
      assert.ok(page.includes(`<code>${path}</code>`), path);
      assert.ok(page.includes(summary.replaceAll("&", "&amp;")), summary);
    }
  });

  it("on the page cannot break out of it", () => {
    const evil = `<img src=x onerror="alert(1)">&`;
    const route: Route = {
      method: "GET",
      path: `/${evil}`,
      tag: evil,
      summary: evil,
      answers: { 200: evil },
      handle: async () => ({ body: {} }),
    };
    const page = docsPage([route], evil);
    assert.doesNotMatch(page, /<img/);
    assert.match(page, /&lt;img src=x onerror=&quot;/);
  });
});

describe("the memory of a batch", () => {
  it("is used for the next one, both for what it says and for what it is answered", async () => {
    await using core = await coreOnMemory();
    const memory = new ReusedMemory();
    const app = serverOf(core, memory);
    const address = await app.listen({ host: "127.0.0.1", port: 0 });
    const messages = Array.from({ length: 100 }, () => ({ from: LULU, to: ZHIWEI, body: "x".repeat(1_000) }));
    const body = JSON.stringify({ messages: messages });
    const request = { method: "POST", headers: { "content-type": "application/json" }, body };
    try {
      for (let batch = 0; batch < 3; batch += 1) {
        const answer = await fetch(`${address}/messages/batch`, request);
        assert.equal(answer.status, 200);
        const bytes = (await answer.arrayBuffer()).byteLength;
        assert.ok(body.length < 128 * 1024 && bytes > 128 * 1024 && bytes < 170 * 1024);
        assert.equal(memory.idleBytes, (128 + 512) * 1024);
      }
    } finally {
      await app.close();
    }
  });
});
