import { type Command, Option } from "commander";
import { readDotenv } from "../../../config/environment.ts";
import { type LoadedConfig, loadConfigWithSources } from "../../../config/load-config.ts";
import { SETTINGS } from "../../../config/settings.ts";
import type { CommandContext } from "../../command-line/command-context.ts";

// The key has its flag among the global options already.
const SERVER_SETTINGS = Object.values(SETTINGS).filter((setting) => setting !== SETTINGS.apiKey);

/** A flag for every setting of the relay, shared by `serve` and `config`. */
export function addSettingOptions(command: Command): Command {
  for (const { flag, placeholder, meaning, variables, fallback } of SERVER_SETTINGS) {
    const shown = typeof fallback === "number" || typeof fallback === "string" ? `; default ${fallback}` : "";
    const text = `${meaning} (${variables.join(" or ")}${shown})`;
    command.addOption(new Option(`--${flag} <${placeholder}>`, text).helpGroup("Settings:"));
  }
  return command;
}

export type SettingFlags = Readonly<Record<string, string | undefined>>;

/** The configuration in force for flags that commander read. */
export function loadConfigOf({ io, globals }: CommandContext, options: SettingFlags): LoadedConfig {
  const flags: Record<string, string | undefined> = { "api-key": globals.apiKey };
  for (const { flag } of SERVER_SETTINGS) flags[flag] = options[new Option(`--${flag}`).attributeName()];
  return loadConfigWithSources({
    flags,
    env: io.env,
    dotenv: readDotenv(io.workingDirectory),
  });
}
