import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { RelayError } from "@a2a-relay/protocol";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The one place where the process environment is read. */
export function processEnvironment(): Environment {
  return process.env;
}

/** The `.env` file of a directory; a directory without one has no settings. */
export function readDotenv(directory: string): Environment {
  const path = join(directory, ".env");
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (reason) {
    if (reason instanceof Error && "code" in reason && reason.code === "ENOENT") return {};
    const why = reason instanceof Error ? reason.message : String(reason);
    throw new RelayError("invalid_argument", `${path} cannot be read: ${why}; repair or remove it`, {
      cause: reason,
    });
  }
}
