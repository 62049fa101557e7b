import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2A_OPERATIONS, A2A_VERSIONS } from "./a2a-dialect.ts";
import { A2A_DIALECTS, dialectOfMethod, parseA2aVersion } from "./dialects.ts";

describe("the dialect of a method", () => {
  const found = (method: string, version?: string): readonly string[] | undefined => {
    const dialect = dialectOfMethod(method, { version });
    return dialect && [dialect.dialect.version, dialect.operation];
  };

  it("is told by its name", () => {
    assert.deepEqual(found("SendMessage"), ["1.0", "send"]);
    assert.deepEqual(found("ListTasks"), ["1.0", "list"]);
    assert.deepEqual(found("message/stream"), ["0.3", "stream"]);
    assert.deepEqual(found("tasks/pushNotificationConfig/list"), ["0.3", "push-list"]);
    assert.deepEqual(found("agent/getAuthenticatedExtendedCard"), ["0.3", "extended-card"]);
    assert.deepEqual(found("agent/authenticatedExtendedCard"), ["0.3", "extended-card"]);
    assert.deepEqual(found("tasks/send"), ["0.1", "send"]);
    assert.deepEqual(found("tasks/sendSubscribe"), ["0.1", "stream"]);
    assert.deepEqual(found("tasks/pushNotification/set"), ["0.1", "push-create"]);
  });

  it("is told by the version where several have the name", () => {
    assert.deepEqual(found("tasks/get"), ["0.3", "get"]);
    assert.deepEqual(found("tasks/get", "0.3.0"), ["0.3", "get"]);
    assert.deepEqual(found("tasks/get", "0.2"), ["0.2", "get"]);
    assert.deepEqual(found("tasks/resubscribe", "0.1"), ["0.1", "subscribe"]);
    assert.deepEqual(found("message/send", "0.2.6"), ["0.2", "send"]);
  });

  it("is told by the name against a version that does not have it", () => {
    assert.deepEqual(found("message/send", "1.0"), ["0.3", "send"]);
    assert.deepEqual(found("SendMessage", "0.3"), ["1.0", "send"]);
    assert.deepEqual(found("tasks/get", "9.9"), ["0.3", "get"]);
  });

  it("is unknown for any other method", () => {
    for (const method of ["", "sendMessage", "tasks/list", "toString", "message/"]) {
      assert.equal(dialectOfMethod(method), undefined);
    }
  });

  it("is found again for every method of every dialect", () => {
    for (const version of A2A_VERSIONS) {
      assert.equal(A2A_DIALECTS[version].version, version);
      for (const operation of A2A_OPERATIONS) {
        const method = A2A_DIALECTS[version].methods[operation];
        if (method !== undefined) assert.deepEqual(found(method, version), [version, operation]);
      }
    }
  });
});

describe("the version header", () => {
  it("has a patch number that means nothing", () => {
    for (const said of ["1.0", "1.0.1", " 1.0.99 ", "1"]) assert.equal(parseA2aVersion(said), "1.0");
    assert.equal(parseA2aVersion("0.3.0"), "0.3");
    assert.equal(parseA2aVersion("0.2.6"), "0.2");
    assert.equal(parseA2aVersion("0.1"), "0.1");
  });

  it("says nothing when it is empty", () => {
    for (const said of [undefined, "", "  "]) assert.equal(parseA2aVersion(said), undefined);
  });

  it("is unknown when it names no version of A2A", () => {
    for (const said of ["9.9", "1.1", "0.4", "v1.0", "1.0-rc", "1.0, 0.3", "一", "1.", "10"]) {
      assert.equal(parseA2aVersion(said), "unknown");
    }
  });
});
