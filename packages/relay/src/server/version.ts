import { readFileSync } from "node:fs";

/** The version of the package, the same from source and from the packed files. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  }
).version;
