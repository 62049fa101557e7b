/** Names as one key of a map: other names never give the same key. */
export function joinedKey(...names: readonly string[]): string {
  return JSON.stringify(names);
}
