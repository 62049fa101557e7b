import { open } from "node:fs/promises";
import { addAbortSignal, type Readable } from "node:stream";
import { CONNECTION_SETTINGS } from "../../../config/database.ts";
import { loadStoreConfig } from "../../../config/load-config.ts";
import { SETTINGS } from "../../../config/settings.ts";
import type { ImportReport } from "../../../server/move-data.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { unusableFile } from "../../command-line/input.ts";
import { visibleLine } from "../../terminal/text.ts";
import { addSettingOptions, type SettingFlags, sourcesOf } from "./config.ts";
import { transferLines, transferView } from "./export.ts";

interface ImportOptions {
  readonly from: string;
}

export function addImport(line: CommandLine): void {
  const command = line
    .command("import", "Read an export into an empty store, and verify its journal.", [
      "a2a-relay import --from relay.ndjson --data ./relay-data",
      "a2a-relay import --from relay.ndjson --database postgres://relay@db.example/relay",
    ])
    .requiredOption("--from <file>", "the file of `a2a-relay export`; - reads it from stdin");
  addSettingOptions(command, [
    SETTINGS.dataDirectory,
    SETTINGS.anchorDirectory,
    ...Object.values(CONNECTION_SETTINGS),
  ]).action(
    line.run<ImportOptions & SettingFlags>(async (context, { from, ...flags }) => {
      const report = await importFile(context, flags, from);
      return await showReport(context, from, report);
    }),
  );
}

async function importFile(context: CommandContext, flags: SettingFlags, path: string): Promise<ImportReport> {
  const { stdin } = context.io;
  if (path === "-") return run(context, flags, stdin);
  await using file = await open(path, "r").catch(unusableFile("--from", path, "read"));
  return await run(context, flags, file.createReadStream({ autoClose: false }));
}

/** Ends also a wait for input. */
async function* chunksOf(stream: Readable, signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
  signal.throwIfAborted();
  yield* addAbortSignal(signal, stream) as AsyncIterable<Uint8Array>;
}

async function run(context: CommandContext, flags: SettingFlags, stream: Readable): Promise<ImportReport> {
  const { output, signal } = context;
  const config = loadStoreConfig(sourcesOf(context, flags));
  const { importData } = await import("../../../server/move-data.ts");
  const report = (lines: number): Promise<void> => output.note(`${lines} lines`);
  try {
    return await importData(config, chunksOf(stream, signal), { signal, report });
  } catch (reason) {
    if (signal.aborted) await output.note("the import is not complete; the same command continues it");
    throw reason;
  }
}

async function showReport(context: CommandContext, from: string, report: ImportReport): Promise<ExitCode> {
  const { output } = context;
  const { problem, chains } = report;
  const view = { ok: problem === undefined, file: from, ...transferView(report), verified: chains };
  await output.show(problem === undefined ? view : { ...view, problem }, () => [
    `imported ${report.lines} lines from ${from}`,
    ...transferLines(report),
    ...chains.map(({ ok, tenant, events, messages }) =>
      visibleLine(`  ${ok ? "verified" : "broken  "}  ${tenant}: ${events} events, ${messages} messages`),
    ),
  ]);
  if (problem === undefined) return EXIT.ok;
  const how = "the database is not usable; remove it, and import a file that was not changed";
  await output.error(visibleLine(`${problem}; ${how}`));
  return EXIT.failure;
}
