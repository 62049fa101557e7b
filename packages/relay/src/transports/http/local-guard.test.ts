import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { refused } from "../../../testing/refusal.ts";
import { LocalGuard } from "./local-guard.ts";

describe("the local guard", () => {
  const guard = new LocalGuard({ hosts: ["relay.example"], allowedOrigins: ["https://page.example"] });

  for (const host of [
    "localhost",
    "LOCALHOST:80",
    "127.0.0.1:8080",
    "[::1]",
    "[::1]:8080",
    "relay.example:443",
  ]) {
    it(`lets the host ${host} through`, () => guard.check(host, undefined));
  }

  for (const host of [
    undefined,
    "",
    "::1",
    "example",
    "relay.example.evil",
    "evil/relay.example",
    "relay.example:",
    "localhost:8080:1",
  ]) {
    it(`refuses the host ${host ?? "(none)"}`, async () => {
      await refused(() => guard.check(host, undefined), "permission_denied");
    });
  }

  it("lets its own pages and allowed ones through, and no others", async () => {
    guard.check("localhost:8080", "http://localhost:8080");
    guard.check("localhost:8080", "https://localhost:8080");
    guard.check("localhost:8080", "https://page.example");
    for (const origin of [
      "http://localhost:8081",
      "http://localhost",
      "null",
      "",
      "https://page.example:444",
      "http://page.example",
    ]) {
      await refused(() => guard.check("localhost:8080", origin), "permission_denied", /may not call/);
    }
  });

  it("asks for no name where a key is needed anyway", async () => {
    const open = new LocalGuard({ hosts: undefined, allowedOrigins: [] });
    open.check("anything.example", undefined);
    open.check(undefined, undefined);
    await refused(() => open.check("anything.example", "https://evil.example"), "permission_denied");
  });

  it("shows answers to allowed pages only", () => {
    assert.equal(guard.allowsOrigin("https://page.example"), true);
    assert.equal(guard.allowsOrigin("http://localhost:8080"), false);
  });
});
