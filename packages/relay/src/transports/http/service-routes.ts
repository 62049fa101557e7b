import { operations } from "@a2a-relay/protocol";
import type { Readiness } from "../../core/journal/journal-service.ts";
import type { Guard } from "../../core/access/guard.ts";
import { DEFAULT_TENANT, type Principal } from "../../core/access/principal.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import { docsPage } from "./docs-page.ts";
import type { HttpMetrics, MetricsScope } from "./http-metrics.ts";
import { openApiDocument } from "./openapi.ts";
import { route, type Route } from "./route.ts";

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
    route(operations.service.health, async () => ({ body: { status: "ok" as const, version } })),
    route(operations.service.ready, async () => {
      await readiness.check();
      return { body: { status: "ready" as const, version } };
    }),
    route(operations.service.metrics, async ({ principal }) => {
      await guard.authorize(principal, "metrics.read");
      const scope = await metricsScope(principal, tenants);
      return { body: await metrics.text(scope), contentType: metrics.contentType };
    }),
    route(operations.service.openapi, async () => ({
      body: openApiDocument([...others, ...routes], version, about.publicUrl()),
    })),
    ...[operations.service.docs, operations.service.home].map((operation) =>
      route(operation, async () => ({
        body: docsPage([...others, ...routes], version),
        contentType: "text/html; charset=utf-8",
      })),
    ),
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
