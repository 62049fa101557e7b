import { visibleLine } from "./terminal-text.ts";

/** A command to be copied into a shell. Its words may come from strangers, and mean nothing there but themselves. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

function shellWord(word: string): string {
  const visible = visibleLine(word);
  return /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(visible) ? visible : `'${visible.replaceAll("'", `'\\''`)}'`;
}
