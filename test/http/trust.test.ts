import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openHttpRelay } from "../../packages/relay/testing/http-relay.ts";

const KEY = "0123456789abcdef0123456789abcdef";
const PAGE = "https://pages.example";

describe("local trust", () => {
  for (const host of ["localhost", "127.0.0.1", "LocalHost", "[::1]", "localhost:9999"]) {
    it(`answers to the name ${host}`, async () => {
      await using relay = await openHttpRelay();
      assert.equal((await relay.get("/agents", { headers: { host } })).status, 200);
    });
  }

  for (const host of [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "169.254.1.1",
    "relay",
  ]) {
    it(`does not answer to the name "${host}"`, async () => {
      await using relay = await openHttpRelay();
      for (const path of ["/agents", "/health", "/docs", "/nothing"]) {
        await relay.refused(
          relay.get(path, { headers: { host } }),
          "permission_denied",
          /A2A_RELAY_PUBLIC_URL/,
        );
      }
      const message = relay.post(
        "/messages",
        { from: "lulu", to: "zhiwei", body: "x" },
        { headers: { host } },
      );
      await relay.refused(message, "permission_denied");
    });
  }

  it("answers to its public name when it has one", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_PUBLIC_URL: "https://relay.example:8443" } });
    for (const host of ["relay.example", "relay.example:8443", "localhost"]) {
      assert.equal((await relay.get("/health", { headers: { host } })).status, 200);
    }
    await relay.refused(relay.get("/health", { headers: { host: "other.example" } }), "permission_denied");
  });

  it("does not answer pages of other origins", async () => {
    await using relay = await openHttpRelay();
    for (const origin of [
      PAGE,
      "null",
      "http://localhost",
      "http://127.0.0.1:1",
      "file://",
      "chrome-extension://x",
    ]) {
      const answer = await relay.get("/agents", { headers: { origin } });
      await relay.refused(Promise.resolve(answer), "permission_denied", /A2A_RELAY_ALLOWED_ORIGINS/);
      assert.equal(answer.headers["access-control-allow-origin"], undefined);
      const preflight = relay.call("OPTIONS", "/messages", undefined, {
        headers: { origin, "access-control-request-method": "POST" },
      });
      await relay.refused(preflight, "permission_denied");
    }
  });

  it("answers its own pages", async () => {
    await using relay = await openHttpRelay();
    const headers = { host: `127.0.0.1:${relay.port}`, origin: `http://127.0.0.1:${relay.port}` };
    assert.equal((await relay.get("/agents", { headers })).status, 200);
  });
});

describe("an allowed origin", () => {
  it("passes its preflight and may read the answers", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_ALLOWED_ORIGINS: PAGE } });
    const preflight = await relay.call("OPTIONS", "/messages", undefined, {
      headers: {
        origin: PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type, authorization",
      },
    });
    assert.deepEqual([preflight.status, preflight.text], [204, ""]);
    assert.equal(preflight.headers["access-control-allow-origin"], PAGE);
    assert.match(preflight.headers["access-control-allow-methods"] ?? "", /POST/);
    assert.match(preflight.headers["access-control-allow-methods"] ?? "", /DELETE/);
    assert.match(preflight.headers["access-control-allow-headers"] ?? "", /content-type/);
    assert.match(preflight.headers["access-control-allow-headers"] ?? "", /authorization/);
    for (const path of ["/agents", "/agents/missing", "/nothing"]) {
      const { headers } = await relay.get(path, { headers: { origin: PAGE } });
      assert.deepEqual([headers["access-control-allow-origin"], headers.vary], [PAGE, "origin"], path);
    }
    const other = relay.get("/agents", { headers: { origin: "https://other.example" } });
    await relay.refused(other, "permission_denied");
  });

  it("may read also why a request could not be understood", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_ALLOWED_ORIGINS: PAGE } });
    const answer = await relay.post("/messages", "{", { headers: { origin: PAGE } });
    assert.deepEqual([answer.status, answer.headers["access-control-allow-origin"]], [400, PAGE]);
  });
});

describe("an API key", () => {
  const env = { A2A_RELAY_API_KEY: KEY };
  const authorized = { authorization: `Bearer ${KEY}` };

  it("opens every route to its holder", async () => {
    await using relay = await openHttpRelay({ env, headers: authorized });
    assert.equal((await relay.get("/agents")).status, 200);
    assert.equal((await relay.get("/metrics")).status, 200);
    await relay.send();
    const lower = { authorization: `bearer ${KEY}` };
    assert.equal((await relay.get("/agents", { headers: lower })).status, 200);
  });

  const wrong: readonly [what: string, authorization: string][] = [
    ["an empty one", ""],
    ["another key", "Bearer another"],
    ["a longer key", `Bearer ${KEY}0`],
    ["a shorter key", `Bearer ${KEY.slice(1)}`],
    ["the key without its scheme", KEY],
    ["another scheme", `Basic ${KEY}`],
    ["two keys", `Bearer ${KEY} ${KEY}`],
  ];
  for (const [what, authorization] of wrong) {
    it(`does not open for ${what}`, async () => {
      await using relay = await openHttpRelay({ env, headers: authorized });
      const answer = await relay.get("/agents", { headers: { authorization } });
      await relay.refused(Promise.resolve(answer), "unauthenticated");
      assert.equal(answer.headers["www-authenticate"], "Bearer");
    });
  }

  it("is required on every route that is not open, before any other check", async () => {
    await using relay = await openHttpRelay({ env, headers: authorized });
    const headers = { authorization: "" };
    const document = JSON.parse((await relay.get("/openapi.json")).text) as {
      readonly paths: Readonly<
        Record<string, Readonly<Record<string, { readonly security: readonly object[] }>>>
      >;
    };
    let asked = 0;
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, { security }] of Object.entries(operations)) {
        const call = relay.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "nothing"), undefined, {
          headers,
        });
        const isOpen = security.every((each) => Object.keys(each).length === 0);
        const { status, text } = await call;
        // Cards are public; this one does not exist.
        if (/^\/agents\/\{id\}\/(?:a2a\/)?(?:card|\.well-known)/.test(path)) {
          assert.equal(status, 404, path);
          continue;
        }
        // An open route that takes a body says that there is none.
        const openStatus = method === "get" ? 200 : 400;
        assert.equal(status, isOpen ? openStatus : 401, path);
        if (isOpen) continue;
        // Whatever the shape of the route's family is.
        assert.match(text, /"code":"unauthenticated"|"reason":"UNAUTHENTICATED"/, path);
        asked += 1;
      }
    }
    assert.ok(asked > 25, `${asked}`);
  });

  it("lets health, readiness and the description be read without a key", async () => {
    await using relay = await openHttpRelay({ env, headers: authorized });
    for (const path of ["/health", "/ready", "/openapi.json", "/docs"]) {
      assert.equal((await relay.get(path, { headers: { authorization: "" } })).status, 200, path);
    }
  });

  it("makes the name of the host irrelevant, and foreign origins not", async () => {
    await using relay = await openHttpRelay({ env, headers: authorized });
    assert.equal((await relay.get("/agents", { headers: { host: "relay.example" } })).status, 200);
    await relay.refused(relay.get("/agents", { headers: { origin: PAGE } }), "permission_denied");
  });
});
