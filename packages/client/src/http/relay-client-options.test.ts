import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fillClientOptions, type RelayClientOptions } from "./relay-client-options.ts";

const url = "http://127.0.0.1:8080";

describe("fillClientOptions", () => {
  it("fills what is absent and freezes the result", () => {
    const { fetch, webSocket, ...filled } = fillClientOptions({ url });
    assert.equal(typeof fetch, "function");
    assert.equal(webSocket(), globalThis.WebSocket);
    assert.deepEqual(filled, {
      url,
      apiKey: undefined,
      timeoutMs: 15_000,
      retries: 4,
      retryDelayMs: 200,
      retryDelayMsMax: 10_000,
    });
    assert.ok(Object.isFrozen(fillClientOptions({ url })));
  });

  it("keeps a path and drops slashes at its end", () => {
    assert.equal(fillClientOptions({ url: "https://example.org/relay//" }).url, "https://example.org/relay");
    assert.equal(fillClientOptions({ url: "http://[::1]:8080/" }).url, "http://[::1]:8080");
  });

  const wrong: readonly [string, Partial<Record<keyof RelayClientOptions, unknown>>, RegExp][] = [
    ["no address", { url: undefined }, /url: expected the relay's address, such as http/],
    ["an address without a scheme", { url: "localhost:8080" }, /got "localhost:8080"/],
    ["another scheme", { url: "ftp://example.org" }, /got "ftp:/],
    ["a query in the address", { url: `${url}?x=1` }, /query or fragment/],
    [
      "a fragment of a number",
      { timeoutMs: 1.5 },
      /timeoutMs: expected a whole number from 1 to .*, got 1.5/,
    ],
    ["a negative number", { retries: -1 }, /retries: .* got -1/],
    ["a number as text", { timeoutMs: "5" }, /timeoutMs: .* got "5"/],
    ["delays that contradict each other", { retryDelayMs: 500, retryDelayMsMax: 100 }, /500 is more than/],
  ];
  for (const [name, options, message] of wrong) {
    it(`refuses ${name}`, () => {
      assert.throws(() => fillClientOptions({ url, ...options } as RelayClientOptions), {
        code: "invalid_argument",
        message,
      });
    });
  }

  it("refuses secrets in the wrong option or shape without repeating them", () => {
    for (const options of [
      { url: "http://me:hunter2@example.org" },
      { url, apiKey: "hunter2\n" },
      { url, apiKey: "" },
    ]) {
      assert.throws(
        () => fillClientOptions(options),
        (error: Error) => !error.message.includes("hunter2") && /apiKey/.test(error.message),
      );
    }
  });
});
