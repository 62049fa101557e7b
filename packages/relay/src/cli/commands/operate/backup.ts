import { SETTINGS } from "../../../config/settings.ts";
import { loadStoreConfig } from "../../../config/load-config.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { addSettingOptions, type SettingFlags, sourcesOf } from "./config.ts";
import { unusableFile } from "../../command-line/input.ts";

export function addBackup(line: CommandLine): void {
  const command = line.command("backup <file>", "Copy the SQLite database, also while the relay runs.", [
    "a2a-relay backup relay-backup.sqlite",
    "a2a-relay backup /backup/relay.sqlite --data /var/lib/a2a-relay",
  ]);
  addSettingOptions(command, [SETTINGS.dataDirectory, SETTINGS.database]).action(
    line.run<SettingFlags, [file: string]>(async (context, flags, file) => {
      const { output, signal } = context;
      const config = loadStoreConfig(sourcesOf(context, flags));
      const { backUp } = await import("../../../server/move-data.ts");
      await backUp(config, file, signal).catch(unusableFile("<file>", file, "written"));
      await output.show({ file }, () => [`copied the database to ${file}`]);
      await output.note(`${file} holds keys and secrets: only you can read it, keep it so`);
    }),
  );
}
