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
    it(`lets the host ${host} through`, () => guard.check({ host }));
  }

  it("refuses a request without a host", async () => {
    await refused(() => guard.check({}), "invalid_argument", /no Host header/);
    await refused(() => guard.check({ host: "" }), "invalid_argument", /no Host header/);
  });

  for (const host of [
    "::1",
    "example",
    "relay.example.evil",
    "evil/relay.example",
    "relay.example:",
    "localhost:8080:1",
  ]) {
    it(`refuses the host ${host}`, async () => {
      await refused(() => guard.check({ host }), "permission_denied");
    });
  }

  it("lets its own pages and allowed ones through, and no others", async () => {
    guard.check({ host: "localhost:8080", origin: "http://localhost:8080" });
    guard.check({ host: "localhost:8080", origin: "https://localhost:8080" });
    guard.check({ host: "localhost:8080", origin: "https://page.example" });
    for (const origin of [
      "http://localhost:8081",
      "http://localhost",
      "null",
      "",
      "https://page.example:444",
      "http://page.example",
    ]) {
      await refused(
        () => guard.check({ host: "localhost:8080", origin }),
        "permission_denied",
        /may not call/,
      );
    }
  });

  it("allows any host where callers need a key", async () => {
    const open = new LocalGuard({ hosts: undefined, allowedOrigins: [] });
    open.check({ host: "anything.example" });
    open.check({ host: "anything.example", "sec-fetch-site": "cross-site" });
    const page = { host: "anything.example", origin: "https://evil.example" };
    await refused(() => open.check(page), "permission_denied");
  });

  it("refuses what a page of another site loads without an origin, but not a link to the docs", async () => {
    const image = { host: "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" } as const;
    await refused(() => guard.check(image), "permission_denied", /other sites/);
    guard.check({ ...image, "sec-fetch-mode": "navigate" });
    guard.check({ ...image, "sec-fetch-site": "same-origin" });
    guard.check({ ...image, "sec-fetch-site": "none" });
  });

  it("shows answers to allowed pages only", () => {
    assert.equal(guard.allowsOrigin("https://page.example"), true);
    assert.equal(guard.allowsOrigin("http://localhost:8080"), false);
  });
});
