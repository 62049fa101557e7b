import { formatInstant, parseInstant, quote, RelayError } from "@a2a-relay/protocol";

/** The last millisecond of the year 9999: later ones cannot be written as an answer writes them. */
const INSTANT_MS_MAX = 253_402_300_799_999;

/** When something ends to hold: ISO 8601 or epoch milliseconds, later than now; null is never. */
export function parseExpiry(
  input: string | number | null | undefined,
  nowMs: number,
  field = "expires_at",
): number | null {
  if (input === undefined || input === null) return null;
  const atMs = typeof input === "number" ? input : parseInstant(input, field);
  if (!Number.isSafeInteger(atMs) || atMs > INSTANT_MS_MAX) {
    throw new RelayError("invalid_argument", `${field}: ${quote(input)} is later than the year 9999`);
  }
  if (atMs > nowMs) return atMs;
  throw new RelayError(
    "invalid_argument",
    `${field}: ${quote(input)} has passed; it is ${formatInstant(nowMs)} here`,
  );
}

/** At its very millisecond it holds no more. */
export function hasExpired(expiresAtMs: number | null, nowMs: number): boolean {
  return expiresAtMs !== null && nowMs >= expiresAtMs;
}
