import { hash } from "node:crypto";
import { canonicalJson } from "@a2a-relay/protocol";

/** The digest of a value, however its members are ordered. */
export function digestOf(value: unknown): string {
  return hash("sha256", canonicalJson(value), "hex");
}

/** The digest of a text exactly as it is stored. */
export function digestOfText(text: string): string {
  return hash("sha256", text, "hex");
}
