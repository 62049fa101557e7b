import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { operations } from "@a2a-relay/protocol";
import { Type } from "typebox";
import { docsPage } from "./docs-page.ts";
import { route } from "./route.ts";

describe("the docs page", () => {
  it("escapes what routes say", () => {
    const evil = `<img src=x onerror="alert(1)">&`;
    const operation = {
      ...operations.agents.list,
      path: `/${evil}`,
      tag: evil,
      summary: evil,
      answers: { 200: { description: evil, schema: Type.Object({}) } },
    } as const;
    const page = docsPage([route(operation, async () => ({ body: {} }))], evil);
    assert.doesNotMatch(page, /<img/);
    assert.match(page, /&lt;img src=x onerror=&quot;/);
  });
});
