import assert from "node:assert/strict";
import { OutboundFailure, type OutboundFailureCode } from "../src/core/ports/outbound-http.ts";

/** Asserts that the request fails with this code and, if given, these words. */
export async function outboundFailure(
  act: Promise<unknown>,
  code: OutboundFailureCode,
  words?: RegExp,
): Promise<OutboundFailure> {
  const reason: unknown = await act.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  assert.ok(reason instanceof OutboundFailure, `${code} was expected, not ${String(reason)}`);
  assert.equal(reason.code, code, reason.message);
  if (words !== undefined) assert.match(reason.message, words);
  return reason;
}
