import type { Readiness } from "../../core/journal/journal-service.ts";
import type { Guard } from "../../core/access/guard.ts";
import { DEFAULT_TENANT, type Principal } from "../../core/access/principal.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import { docsPage } from "./docs-page.ts";
import type { HttpMetrics, MetricsScope } from "./http-metrics.ts";
import { openApiDocument } from "./openapi.ts";
import type { Route } from "./route.ts";

const tag = "Service";

/** Health, readiness, metrics and the description of all routes, themselves included. */
export function serviceRoutes(parts: {
  readonly guard: Guard;
  readonly tenants: TenantService;
  readonly readiness: Readiness;
  readonly metrics: HttpMetrics;
  readonly about: { readonly version: string; readonly publicUrl: () => string };
  readonly others: readonly Route[];
}): readonly Route[] {
  const { guard, tenants, readiness, metrics, about, others } = parts;
  const { version } = about;
  const routes: readonly Route[] = [
    {
      method: "GET",
      path: "/health",
      tag,
      summary: "The process is alive",
      open: true,
      answers: { 200: "Alive" },
      handle: async () => ({ body: { status: "ok", version } }),
    },
    {
      method: "GET",
      path: "/ready",
      tag,
      summary: "A write reaches the disk",
      open: true,
      answers: { 200: "Ready" },
      handle: async () => {
        await readiness.check();
        return { body: { status: "ready", version } };
      },
    },
    {
      method: "GET",
      path: "/metrics",
      tag,
      summary: "Prometheus metrics: of the whole relay for its operator, of a tenant for its operators",
      answers: { 200: "Metrics in Prometheus text format" },
      handle: async ({ principal }) => {
        await guard.authorize(principal, "metrics.read");
        const scope = await metricsScope(principal, tenants);
        return { body: await metrics.text(scope), contentType: metrics.contentType };
      },
    },
    {
      method: "GET",
      path: "/openapi.json",
      tag,
      summary: "This API as OpenAPI 3.1",
      open: true,
      answers: { 200: "The document" },
      handle: async () => ({ body: openApiDocument([...others, ...routes], version, about.publicUrl()) }),
    },
    ...["/docs", "/"].map((path): Route => ({
      method: "GET",
      path,
      tag,
      summary: "This API for people",
      open: true,
      answers: { 200: "A page" },
      handle: async () => ({
        body: docsPage([...others, ...routes], version),
        contentType: "text/html; charset=utf-8",
      }),
    })),
  ];
  return routes;
}

/** The operator of the relay sees all of it, unless it calls a tenant's path. */
async function metricsScope(principal: Principal, tenants: TenantService): Promise<MetricsScope> {
  const { tenant } = principal;
  const seesAll = principal.kind === "operator" && principal.isRoot && tenant === DEFAULT_TENANT;
  if (!seesAll) return { tenants: [tenant], isProcessWide: false };
  return { tenants: (await tenants.all()).map(({ id }) => id), isProcessWide: true };
}
