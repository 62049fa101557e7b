import { CONNECTION_SETTINGS } from "../../../config/database.ts";
import { loadStoreConfig } from "../../../config/load-config.ts";
import { SETTINGS } from "../../../config/settings.ts";
import type { Exported, ExportTarget, Transferred } from "../../../server/move-data.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { unusableFile } from "../../command-line/input.ts";
import type { CliWritable } from "../../terminal/output.ts";
import { factLines } from "../../terminal/text.ts";
import { addSettingOptions, type SettingFlags, sourcesOf } from "./config.ts";

/** Text that is collected before it is written to stdout. */
const WRITE_CHARS = 64 * 1024;

interface ExportOptions {
  readonly to: string;
}

export function addExport(line: CommandLine): void {
  const command = line
    .command("export", "Write all data to a file, to import it into another store.", [
      "a2a-relay export --to relay.ndjson",
      "a2a-relay export --to relay.ndjson --database postgres://relay@db.example/relay",
    ])
    .requiredOption("--to <file>", "where to; an unfinished export is continued; - writes to stdout");
  addSettingOptions(command, [SETTINGS.dataDirectory, ...Object.values(CONNECTION_SETTINGS)]).action(
    line.run<ExportOptions & SettingFlags>((context, { to, ...flags }) =>
      to === "-" ? exportToStdout(context, flags) : exportToFile(context, flags, to),
    ),
  );
}

async function exportToStdout(context: CommandContext, flags: SettingFlags): Promise<void> {
  const exported = await run(context, flags, async () => new StdoutTarget(context.io.stdout));
  await context.output.note(`exported ${exported.lines} lines to stdout`);
}

async function exportToFile(context: CommandContext, flags: SettingFlags, path: string): Promise<void> {
  const { output } = context;
  const { ExportFile } = await import("../../../server/move-data.ts");
  let isBegun = false;
  const openFile = async (): Promise<ExportTarget> => {
    const file = await ExportFile.open(path).catch(unusableFile("--to", path, "written"));
    isBegun = true;
    return file;
  };
  const exported = await run(context, flags, openFile).catch(async (reason: unknown) => {
    if (isBegun) await output.note(`${path} is not complete; the same command continues it`);
    throw reason;
  });
  const { keptLines, hasChanged } = exported;
  const changed = `the data has changed since ${path} was begun: written anew from line ${keptLines + 1}`;
  if (hasChanged) await output.note(changed);
  else if (keptLines > 0) await output.note(`continued after line ${keptLines}`);
  await output.show({ file: path, kept_lines: keptLines, ...transferView(exported) }, () => [
    `exported ${exported.lines} lines to ${path}`,
    ...transferLines(exported),
  ]);
  await output.note(`${path} holds keys and secrets: only you can read it, keep it so`);
}

async function run(
  context: CommandContext,
  flags: SettingFlags,
  openTarget: () => Promise<ExportTarget>,
): Promise<Exported> {
  const config = loadStoreConfig(sourcesOf(context, flags));
  const { exportData } = await import("../../../server/move-data.ts");
  const report = (lines: number): Promise<void> => context.output.note(`${lines} lines`);
  return exportData(config, openTarget, { signal: context.signal, report });
}

/** For programs. */
export function transferView({ lines, digest, records, header }: Transferred) {
  const chains = header.chains.map(({ tenant, head }) => ({ tenant, ...head }));
  return { lines, sha256: digest, records, chains };
}

/** For people. */
export function transferLines({ records, header }: Transferred): readonly string[] {
  return factLines([
    ...Object.entries(records).map(([kind, count]) => [kind, String(count)] as const),
    ...header.chains.map(({ tenant, head }) => ["head", `${tenant} ${head.seq}:${head.hash}`] as const),
  ]);
}

class StdoutTarget implements ExportTarget {
  readonly begun = undefined;
  readonly keptLines = 0;
  readonly hasChanged = false;
  readonly #stdout: CliWritable;
  #pending = "";

  constructor(stdout: CliWritable) {
    this.#stdout = stdout;
  }

  async write(line: string): Promise<void> {
    this.#pending += `${line}\n`;
    if (this.#pending.length >= WRITE_CHARS) await this.finish();
  }

  async finish(): Promise<void> {
    const text = this.#pending;
    this.#pending = "";
    await new Promise<void>((resolve, reject) => {
      this.#stdout.write(text, (reason) => (reason instanceof Error ? reject(reason) : resolve()));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The process has opened stdout, not this command.
  }
}
