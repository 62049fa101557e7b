import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loadClientConfig } from "./client-config.ts";

const KEY = "0123456789abcdef";

describe("loadClientConfig", () => {
  it("talks to the relay of this machine unless told otherwise", () => {
    const config = loadClientConfig({ flags: {}, env: {}, dotenv: {} });
    assert.deepEqual(config, { url: "http://127.0.0.1:8080", apiKey: undefined });
  });

  it("takes the address from the flag before the environment", () => {
    const env = { A2A_RELAY_URL: "http://127.0.0.1:1" };
    assert.equal(loadClientConfig({ flags: {}, env, dotenv: {} }).url, "http://127.0.0.1:1");
    const flags = { relay: "http://127.0.0.1:2/" };
    assert.equal(loadClientConfig({ flags, env, dotenv: {} }).url, "http://127.0.0.1:2");
  });

  it("takes the key from .env, but never the address", () => {
    const dotenv = { A2A_RELAY_URL: "http://elsewhere.example", A2A_RELAY_API_KEY: KEY };
    const config = loadClientConfig({ flags: {}, env: {}, dotenv });
    assert.deepEqual(config, { url: "http://127.0.0.1:8080", apiKey: KEY });
  });
});
