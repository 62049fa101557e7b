import assert from "node:assert/strict";
import { inspect } from "node:util";
import { RelayError, type RelayErrorCode } from "@a2a-relay/protocol";

/** The refusal that must come, with this code and, where it matters, these words. */
export async function refused(
  act: Promise<unknown> | (() => unknown),
  code: RelayErrorCode,
  words?: RegExp,
): Promise<RelayError> {
  const reason = await reasonOf(act);
  if (!(reason instanceof RelayError)) throw new assert.AssertionError({ message: describe(reason, code) });
  assert.equal(reason.code, code, reason.message);
  if (words !== undefined) assert.match(reason.message, words);
  return reason;
}

async function reasonOf(act: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    await (typeof act === "function" ? act() : act);
  } catch (reason) {
    return reason;
  }
  return undefined;
}

function describe(reason: unknown, code: string): string {
  if (reason === undefined) return `it was accepted; ${code} was expected`;
  return `${code} was expected, not ${inspect(reason)}`;
}
