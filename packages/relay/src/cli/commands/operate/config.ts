import { type Command, Option } from "commander";
import { type LoadedConfig, loadConfigWithSources } from "../../../config/load-config.ts";
import { type ConfigSources, readDotenv, type EffectiveSetting } from "../../../config/setting-reader.ts";
import type { Setting } from "../../../config/setting.ts";
import { SETTINGS } from "../../../config/settings.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import type { Column } from "../../terminal/table.ts";

const COLUMNS: readonly Column<EffectiveSetting>[] = [
  { title: "SETTING", text: (setting) => setting.variable },
  {
    title: "VALUE",
    text: (setting) => String(setting.value ?? "") || "(none)",
    flexible: true,
  },
  {
    title: "FROM",
    text: (setting) => setting.source,
    style: (setting) => (setting.source === "default" ? "dim" : "green"),
  },
  { title: "FLAG", text: (setting) => setting.flag },
];

export function addConfig(line: CommandLine): void {
  const command = line.command(
    "config",
    "Show the configuration `serve` would have here, and where each value comes from.",
    ["PORT=9000 a2a-relay config --data ./relay-data"],
  );
  addSettingOptions(command).action(
    line.run<SettingFlags>(async (context, options) => {
      const { output } = context;
      const { settings, unknownVariables } = loadConfigOf(context, options);
      await output.show({ settings, unknown_variables: unknownVariables }, () =>
        output.table(settings, COLUMNS),
      );
      for (const name of unknownVariables)
        await output.note(`${name} is set but is no setting; is it misspelt?`);
    }),
  );
}

// The key has its flag among the global options already.
const SERVER_SETTINGS = Object.values(SETTINGS).filter((setting) => setting !== SETTINGS.apiKey);

/** A flag for each of the settings; without them for every setting of the relay. */
export function addSettingOptions(
  command: Command,
  settings: readonly Setting<unknown>[] = SERVER_SETTINGS,
): Command {
  for (const { flag, placeholder, meaning, variables, fallback } of settings) {
    const shown = typeof fallback === "number" || typeof fallback === "string" ? `; default ${fallback}` : "";
    const text = `${meaning} (${variables.join(" or ")}${shown})`;
    // A switch alone is on.
    const value = typeof fallback === "boolean" ? `[${placeholder}]` : `<${placeholder}>`;
    command.addOption(new Option(`--${flag} ${value}`, text).preset("on").helpGroup("Settings:"));
  }
  return command;
}

export type SettingFlags = Readonly<Record<string, string | undefined>>;

/** The configuration in force for flags that commander read. */
export function loadConfigOf(context: CommandContext, options: SettingFlags): LoadedConfig {
  return loadConfigWithSources(sourcesOf(context, options));
}

export function sourcesOf({ io, globals }: CommandContext, options: SettingFlags): ConfigSources {
  const flags: Record<string, string | undefined> = { "api-key": globals.apiKey };
  for (const { flag } of SERVER_SETTINGS) flags[flag] = options[new Option(`--${flag}`).attributeName()];
  return { flags, env: io.env, dotenv: readDotenv(io.workingDirectory) };
}
