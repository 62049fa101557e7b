import { styleText } from "node:util";
import type { Environment } from "../../config/environment.ts";
import type { CliWritable } from "./cli-io.ts";

export type TextStyle = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
export type Paint = (style: TextStyle, text: string) => string;

/** Colours for people on a terminal who did not ask to be spared. */
export function createPaint(stream: CliWritable, env: Environment, wanted: boolean): Paint {
  const plain = !wanted || stream.isTTY !== true || (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return plain
    ? (_style, text) => text
    : (style, text) => (text === "" ? "" : styleText(style, text, { validateStream: false }));
}
