import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { RelayError } from "@a2a-relay/protocol";
import type { Setting } from "./setting.ts";

/** Where values come from, the strongest first. */
export interface ConfigSources {
  /** By the flag's name without dashes, e.g. `{ "public-url": "https://…" }`. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly env: Environment;
  readonly dotenv: Environment;
}

const SETTING_SOURCES = ["flag", "environment", ".env", "default"] as const;
type SettingSource = (typeof SETTING_SOURCES)[number];

/** One value in force, as `a2a-relay config` shows it. */
export interface EffectiveSetting {
  /** The variable that was read, or the preferred one. */
  readonly variable: string;
  readonly flag: string;
  readonly source: SettingSource;
  /** A secret is shown as `(set)`. */
  readonly value: string | number | boolean | readonly string[] | null;
}

/** Reads settings from the strongest source that has them, and keeps which one it was. */
export class SettingReader {
  readonly settings: EffectiveSetting[] = [];
  readonly #sources: ConfigSources;

  constructor(sources: ConfigSources) {
    this.#sources = sources;
  }

  read<Value>(setting: Setting<Value>): Value {
    const found = this.#find(setting);
    const value =
      found === undefined
        ? setting.fallback
        : setting.parse(found.text, (expected) => this.refuse(setting, expected));
    this.settings.push({
      variable: found?.variable ?? setting.variables[0],
      flag: `--${setting.flag}`,
      source: found?.source ?? "default",
      value: setting.secret === true && value !== undefined ? "(set)" : shown(value),
    });
    return value;
  }

  refuse(setting: Setting<unknown>, expected: string): never {
    throw new RelayError("invalid_argument", `${this.#describe(setting)}: expected ${expected}`);
  }

  #find(setting: Setting<unknown>): FoundValue | undefined {
    const { flags, env, dotenv } = this.#sources;
    const [preferred] = setting.variables;
    const flag = flags[setting.flag];
    if (flag !== undefined) return { text: flag, source: "flag", variable: preferred };
    for (const [source, values] of [
      ["environment", env],
      [".env", dotenv],
    ] as const) {
      for (const variable of setting.variables) {
        const text = values[variable]?.trim();
        // An empty value means not set: compose files and CI pass absent values that way.
        if (text !== undefined && text !== "") return { text, source, variable };
      }
    }
    return undefined;
  }

  #describe(setting: Setting<unknown>): string {
    const found = this.#find(setting);
    if (found === undefined)
      return `${setting.variables[0]}=${String(shown(setting.fallback))} (the default)`;
    const text = setting.secret === true ? `(${found.text.length} characters)` : JSON.stringify(found.text);
    if (found.source === "flag") return `--${setting.flag} ${text}`;
    return `${found.variable}=${text} from ${found.source === ".env" ? ".env" : "the environment"}`;
  }
}

function shown(value: unknown): EffectiveSetting["value"] {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return Array.isArray(value) ? value.map(String) : null;
}

interface FoundValue {
  readonly text: string;
  readonly source: SettingSource;
  readonly variable: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Only this function reads the process environment. */
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
