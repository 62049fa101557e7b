import { formatInstant, parseInstant, quote, RelayError } from "@a2a-relay/protocol";

/** The last millisecond of the year 9999: ISO 8601 has four digits for the year. */
const INSTANT_MS_MAX = 253_402_300_799_999;

/** Reads ISO 8601 or epoch milliseconds, later than now. Null: never. */
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

/** True from the millisecond of the expiry on. */
export function hasExpired(expiresAtMs: number | null, nowMs: number): boolean {
  return expiresAtMs !== null && nowMs >= expiresAtMs;
}
