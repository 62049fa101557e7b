import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2A_OPERATIONS } from "./a2a-dialect.ts";
import { readRestPath, REST_ROUTES, restPathOf } from "./rest-routes.ts";

const PARAMS = { id: "一", taskId: "任务" };

describe("a path of the HTTP+JSON binding", () => {
  for (const operation of A2A_OPERATIONS) {
    it(`that a caller writes for ${operation} is read as the same operation, with its ids`, () => {
      for (const method of REST_ROUTES[operation].methods) {
        for (const isOlder of [false, true]) {
          const path = decodeURIComponent(restPathOf(operation, PARAMS, { isOlder })).replace(/^v1\//, "");
          const read = readRestPath(method, path);
          assert.equal(read?.operation, operation);
          for (const [name, id] of Object.entries(read.params)) assert.equal(id, { ...PARAMS }[name]);
        }
      }
    });
  }

  it("is below v1 in 0.3, where the extended card has another name", () => {
    assert.equal(restPathOf("cancel", PARAMS, { isOlder: true }), "v1/tasks/%E4%B8%80:cancel");
    assert.equal(restPathOf("extended-card", {}, { isOlder: true }), "v1/card");
    assert.equal(restPathOf("extended-card", {}, { isOlder: false }), "extendedAgentCard");
  });

  it("with an unknown verb is none, although the id of a configuration may have a colon", () => {
    assert.equal(readRestPath("GET", "tasks/t:pause"), undefined);
    const path = "tasks/t/pushNotificationConfigs/a:b";
    assert.deepEqual(readRestPath("DELETE", path), {
      operation: "push-delete",
      params: { taskId: "t", id: "a:b" },
    });
  });

  it("holds no id that would name another path", () => {
    for (const id of ["", ".", "..", "\ud800", 7, undefined]) {
      assert.throws(() => restPathOf("get", { id }, { isOlder: false }), {
        code: "invalid_argument",
        message: /is not a usable id/,
      });
    }
    assert.equal(restPathOf("get", { id: "a/b?c#d" }, { isOlder: false }), "tasks/a%2Fb%3Fc%23d");
  });
});
