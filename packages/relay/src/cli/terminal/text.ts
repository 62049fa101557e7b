import { styleText } from "node:util";
import stringWidth from "string-width";
import type { Environment } from "../../config/setting-reader.ts";

const SEGMENTER = new Intl.Segmenter();

/** Pads with blanks up to a width in terminal cells. */
export function padDisplay(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - stringWidth(text)));
}

/** Shortens to the width with an ellipsis, never in the middle of a character. */
export function truncateDisplay(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const { segment } of SEGMENTER.segment(text)) {
    used += stringWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/**
 * Makes visible every character that could move the cursor, change colours, reorder or hide text: text of other
 * agents is printed on an operator's terminal and must not forge output there. Joiners (U+200C, U+200D) stay,
 * because words and emoji need them.
 */
export function visibleLine(text: string): string {
  return text.toWellFormed().replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/gu, picture);
}

/** The same for text of many lines: line breaks and tabs stay. */
export function visibleText(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.split("\t").map(visibleLine).join("\t"))
    .join("\n");
}

function picture(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

export type Fact = readonly [name: string, text: string | undefined];

/** Aligned `name  text` lines; facts without a text are left out. */
export function factLines(facts: readonly Fact[]): readonly string[] {
  const width = Math.max(...facts.map(([name]) => name.length)) + 2;
  return facts
    .filter(([, text]) => text !== undefined && text !== "")
    .map(([name, text]) => visibleLine(`  ${name.padEnd(width)}${text}`));
}

/** A command to copy into a shell. Its words may come from other agents, so each one is quoted. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

function shellWord(word: string): string {
  const visible = visibleLine(word);
  return /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(visible) ? visible : `'${visible.replaceAll("'", `'\\''`)}'`;
}

export type TextStyle = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
export type Paint = (style: TextStyle, text: string) => string;

/** Colours only on a terminal, and not with `--no-color`, `NO_COLOR` or a dumb terminal. */
export function createPaint(
  stream: { readonly isTTY?: boolean | undefined },
  env: Environment,
  wanted: boolean,
): Paint {
  const plain = !wanted || stream.isTTY !== true || (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return plain
    ? (_style, text) => text
    : (style, text) => (text === "" ? "" : styleText(style, text, { validateStream: false }));
}
