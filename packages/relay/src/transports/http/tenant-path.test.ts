import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { tenantOfPath, withoutTenant } from "./tenant-path.ts";

describe("a path with a tenant", () => {
  const cases: readonly [url: string, tenant: string | undefined, path: string][] = [
    ["/agents", undefined, "/agents"],
    ["/t", undefined, "/t"],
    ["/t/", undefined, "/t/"],
    ["/t//agents", undefined, "/t//agents"],
    ["/tasks/t/acme", undefined, "/tasks/t/acme"],
    ["/t/acme", "acme", "/"],
    ["/t/acme?x=1", "acme", "/?x=1"],
    ["/t/acme/agents?limit=1", "acme", "/agents?limit=1"],
    ["/t/%E7%9F%A5%E5%BE%AE/agents/lulu%40kamac", "知微", "/agents/lulu%40kamac"],
    ["/t/a%2Fb/agents", "a/b", "/agents"],
    ["/t/a/t/b/agents", "a", "/t/b/agents"],
    ["/t/%zz/agents", undefined, "/t/%zz/agents"],
    ["/t/%ff/agents", undefined, "/t/%ff/agents"],
  ];
  for (const [url, tenant, path] of cases) {
    it(`${url} is ${path} in ${tenant ?? "no named tenant"}`, () => {
      assert.deepEqual([tenantOfPath(url), withoutTenant(url)], [tenant, path]);
    });
  }
});
