import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory } from "../../testing/core-on-memory.ts";
import { Gateway } from "../transports/gateway/gateway.ts";
import { docsPage } from "../transports/http/docs-page.ts";
import { HttpMetrics } from "../transports/http/http-metrics.ts";
import { createHttpServer } from "../transports/http/http-server.ts";
import { urlOf } from "../transports/http/request-context.ts";
import { openApiDocument } from "../transports/http/openapi.ts";
import type { Route } from "../transports/http/route.ts";
import { relayRoutes } from "./routes.ts";

const ABOUT = {
  version: "1.2.3",
  publicUrl: () => "http://relay.test",
  cardDialect: "1.0",
  heartbeatMs: 15_000,
} as const;

const METRICS = new HttpMetrics(async () => new Map());

function routesOf(core: CoreOnMemory): readonly Route[] {
  return relayRoutes(core, METRICS, ABOUT);
}

function serverOf(core: CoreOnMemory): ReturnType<typeof createHttpServer> {
  return createHttpServer(
    {
      routes: routesOf(core),
      metrics: METRICS,
      gateway: new Gateway({ ...core, authenticator: { authenticate: async () => core.operator } }),
      log: { error: (about) => assert.fail(JSON.stringify(about)) },
    },
    { hosts: [], allowedOrigins: [], heartbeatMs: 15_000, streamStallMs: 30_000 },
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
});
