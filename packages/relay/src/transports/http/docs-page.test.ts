import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { docsPage } from "./docs-page.ts";
import type { Route } from "./route.ts";

describe("the docs page", () => {
  it("escapes what routes say", () => {
    const evil = `<img src=x onerror="alert(1)">&`;
    const route: Route = {
      method: "GET",
      path: `/${evil}`,
      tag: evil,
      summary: evil,
      answers: { 200: evil },
      handle: async () => ({ body: {} }),
    };
    const page = docsPage([route], evil);
    assert.doesNotMatch(page, /<img/);
    assert.match(page, /&lt;img src=x onerror=&quot;/);
  });
});
