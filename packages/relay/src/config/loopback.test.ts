import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLoopbackHost } from "./loopback.ts";

describe("isLoopbackHost", () => {
  for (const host of [
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "[::1]",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1",
    "LocalHost",
  ]) {
    it(`believes ${host}`, () => assert.equal(isLoopbackHost(host), true));
  }
  for (const host of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "128.0.0.1",
    "localhost.example.org",
    "127.0.0.1.example.org",
  ]) {
    it(`does not believe ${host}`, () => assert.equal(isLoopbackHost(host), false));
  }
});
