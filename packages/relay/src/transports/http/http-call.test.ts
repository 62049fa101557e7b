import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MailboxReadSchema, QueueQuerySchema } from "@a2a-relay/protocol";
import { readQuery, tenantOfPath, withoutTenant } from "./http-call.ts";

describe("a query string", () => {
  it("has numbers and truth values where the schema has them", () => {
    assert.deepEqual(readQuery(MailboxReadSchema, { limit: "7", wait_ms: "-1", peek: "true", since: "42" }), {
      limit: 7,
      wait_ms: -1,
      peek: true,
      since: "42",
    });
    assert.deepEqual(readQuery(MailboxReadSchema, { peek: "0" }), { peek: false });
    assert.deepEqual(readQuery(MailboxReadSchema, { peek: "1" }), { peek: true });
  });

  it("keeps other values as text, so that the core can say what is wrong", () => {
    const odd = { limit: "ten", wait_ms: "1.5", peek: "TRUE" };
    assert.deepEqual(readQuery(MailboxReadSchema, odd), odd);
    assert.deepEqual(readQuery(MailboxReadSchema, { limit: "99999999999999999" }), {
      limit: "99999999999999999",
    });
    assert.deepEqual(readQuery(MailboxReadSchema, { limit: ["1", "2"] }), { limit: ["1", "2"] });
  });

  it("reads unbounded numbers of up to 64 bits", () => {
    assert.deepEqual(readQuery(QueueQuerySchema, { min_lease_age_ms: "18446744073709551615" }), {
      min_lease_age_ms: 2 ** 64,
    });
    assert.deepEqual(readQuery(QueueQuerySchema, { min_lease_age_ms: "1".repeat(21) }), {
      min_lease_age_ms: "1".repeat(21),
    });
  });

  it("keeps unknown members, and converts nothing without a schema", () => {
    assert.deepEqual(readQuery(MailboxReadSchema, { other: "1" }), { other: "1" });
    assert.deepEqual(readQuery(undefined, { limit: "1" }), { limit: "1" });
  });

  it("has no prototype that a caller could set", () => {
    const raw = JSON.parse('{"__proto__":"polluted"}') as unknown;
    const query = readQuery(MailboxReadSchema, raw) as Record<string, unknown>;
    assert.equal(Object.getPrototypeOf(query), Object.prototype);
    assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  });
});

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
