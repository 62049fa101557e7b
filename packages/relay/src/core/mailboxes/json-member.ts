const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x7b, 0x5b]);
const CLOSING = new Set([0x7d, 0x5d]);
const COMMA = 0x2c;

/**
 * The JSON of one member of an object, out of the JSON of the object, which is as `JSON.stringify` writes it. A message
 * that is only passed on need not be read and written again.
 */
export function memberJson(json: string, member: string): string | undefined {
  const wanted = JSON.stringify(member);
  for (let at = 1; json.charCodeAt(at) === QUOTE;) {
    const nameEnd = stringEnd(json, at);
    const valueEnd = endOfValue(json, nameEnd + 1);
    if (nameEnd - at === wanted.length && json.startsWith(wanted, at))
      return json.slice(nameEnd + 1, valueEnd);
    at = valueEnd + 1;
  }
  return undefined;
}

/** Behind the value that begins at `start`. */
function endOfValue(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at += 1) {
    const char = json.charCodeAt(at);
    if (char === QUOTE) at = stringEnd(json, at) - 1;
    else if (OPENING.has(char)) depth += 1;
    else if (depth === 0 && (char === COMMA || CLOSING.has(char))) return at;
    else if (CLOSING.has(char)) depth -= 1;
  }
  return json.length;
}

/** Behind the string that begins at `start`; it is found from quote to quote, not from character to character. */
function stringEnd(json: string, start: number): number {
  let quote = start;
  do quote = json.indexOf('"', quote + 1);
  while (quote !== -1 && isEscaped(json, quote));
  return quote === -1 ? json.length : quote + 1;
}

function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}
