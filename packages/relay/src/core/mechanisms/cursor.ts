import { quote, RelayError } from "@a2a-relay/protocol";

/** Cursors are opaque to clients; ours are positions. Absent means from the beginning. */
export function parseCursor(input: string | undefined, field: string): number {
  if (input === undefined || input === "") return 0;
  const position = /^\d{1,16}$/.test(input) ? Number(input) : Number.NaN;
  if (Number.isSafeInteger(position)) return position;
  throw new RelayError(
    "invalid_argument",
    `${field}: ${quote(input)} is not a cursor; pass the one from an earlier answer, or leave it out`,
  );
}
