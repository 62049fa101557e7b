const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE = 58;

/** For keys and signatures; quadratic, so not for long texts. The alphabet has no 0, O, I or l. */
export function toBase58(bytes: Uint8Array): string {
  const digits: number[] = [];
  for (const byte of bytes) {
    let carry = byte;
    for (let index = 0; index < digits.length; index += 1) {
      carry += (digits[index] ?? 0) * 256;
      digits[index] = carry % BASE;
      carry = Math.floor(carry / BASE);
    }
    for (; carry > 0; carry = Math.floor(carry / BASE)) digits.push(carry % BASE);
  }
  const zeroes = bytes.findIndex((byte) => byte !== 0);
  const leading = "1".repeat(zeroes === -1 ? bytes.length : zeroes);
  return (
    leading +
    digits
      .toReversed()
      .map((digit) => ALPHABET[digit])
      .join("")
  );
}

/** Undefined when the text is not base58, or does not decode to exactly `byteLength` bytes. */
export function fromBase58(text: string, byteLength: number): Uint8Array | undefined {
  // Too long for that many bytes.
  if (text.length > byteLength * 2) return undefined;
  const bytes: number[] = [];
  for (const char of text) {
    let carry = ALPHABET.indexOf(char);
    if (carry === -1) return undefined;
    for (let index = 0; index < bytes.length; index += 1) {
      carry += (bytes[index] ?? 0) * BASE;
      bytes[index] = carry & 255;
      carry >>= 8;
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 255);
  }
  const leading = /^1*/.exec(text)?.[0].length ?? 0;
  const all = [...Array.from({ length: leading }, () => 0), ...bytes.toReversed()];
  return all.length === byteLength ? Uint8Array.from(all) : undefined;
}
