import { visibleLine } from "./terminal-text.ts";

export type Fact = readonly [name: string, text: string | undefined];

/** Aligned `name  text` lines; facts without a text are left out. */
export function factLines(facts: readonly Fact[]): readonly string[] {
  const width = Math.max(...facts.map(([name]) => name.length)) + 2;
  return facts
    .filter(([, text]) => text !== undefined && text !== "")
    .map(([name, text]) => visibleLine(`  ${name.padEnd(width)}${text}`));
}
