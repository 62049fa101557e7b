import assert from "node:assert/strict";
import { OutboundFailure, type OutboundFailureCode } from "../src/transports/egress/http-client.ts";

/** The failure of a request that must fail with this code and, where given, this text. */
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
