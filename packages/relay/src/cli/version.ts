import { readFileSync } from "node:fs";

/** Of the package this file is in; the same path from `src` and from `dist`. */
export function readVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { readonly version: string };
  return version;
}
