import type { EffectiveSetting } from "../../../config/setting-reader.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { addSettingOptions, loadConfigOf, type SettingFlags } from "./setting-options.ts";
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
    ["PORT=9000 a2a-relay config --data ./mail"],
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
