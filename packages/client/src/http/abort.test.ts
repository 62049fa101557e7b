import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { onAbort } from "./abort.ts";

describe("onAbort", () => {
  it("calls back everybody who still listens, once", () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const hear = (): void => void heard.push("twice given");
    onAbort(controller.signal, hear);
    onAbort(controller.signal, hear);
    const leave = onAbort(controller.signal, () => heard.push("gone"));
    leave();
    leave();
    controller.abort();
    assert.deepEqual(heard, ["twice given", "twice given"]);
  });

  it("puts one listener on the signal, and none after the last callback", () => {
    const { signal } = new AbortController();
    const calls: string[] = [];
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => (calls.push("add"), add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (
      calls.push("remove"),
      remove(...args)
    );
    const leave = Array.from({ length: 50 }, () => onAbort(signal, () => {}));
    assert.deepEqual(calls, ["add"]);
    for (const each of leave) each();
    assert.deepEqual(calls, ["add", "remove"]);
    onAbort(signal, () => {})();
    assert.deepEqual(calls, ["add", "remove", "add", "remove"]);
  });

  it("needs no signal", () => {
    onAbort(undefined, () => assert.fail("who called?"))();
  });
});
