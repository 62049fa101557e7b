import { Option } from "commander";
import { CONNECTION_SETTINGS } from "../../../config/database.ts";
import { loadConnectionConfig } from "../../../config/load-config.ts";
import type { DatabaseSchema, MigrateMode } from "../../../server/migrate-database.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { addSettingOptions, type SettingFlags, sourcesOf } from "./config.ts";

interface MigrateOptions {
  readonly dryRun?: boolean;
  readonly status?: boolean;
}

export function addMigrate(line: CommandLine): void {
  const command = line
    .command("migrate", "Run the pending migrations of a PostgreSQL database.", [
      "a2a-relay migrate --database postgres://relay@db.example/relay --status",
      'DATABASE_URL="postgres://relay@db.example/relay" a2a-relay migrate',
    ])
    .addOption(new Option("--dry-run", "only list what would run").conflicts("status"))
    .option("--status", "only show the schema version and what is pending");
  addSettingOptions(command, Object.values(CONNECTION_SETTINGS)).action(
    line.run<MigrateOptions & SettingFlags>(async (context, { dryRun, status, ...flags }) => {
      const { output } = context;
      const config = loadConnectionConfig(sourcesOf(context, flags));
      const change: MigrateMode = dryRun === true ? "dry-run" : "migrate";
      const mode = status === true ? "status" : change;
      const { migrateDatabase } = await import("../../../server/migrate-database.ts");
      const schema = await migrateDatabase(config, mode);
      if (schema === undefined) {
        const what = "the migrations of an SQLite database run when the relay starts";
        await output.show({ database: "sqlite", note: what }, () => [what]);
        return;
      }
      await output.show(view(schema, mode), () => lines(schema, mode));
    }),
  );
}

function view(schema: DatabaseSchema, mode: MigrateMode): Readonly<Record<string, unknown>> {
  const { database, version, knownVersion, pending } = schema;
  if (mode !== "migrate") return { database, schema_version: version, known_version: knownVersion, pending };
  return { database, schema_version: knownVersion, from_version: version, ran: pending };
}

function lines(schema: DatabaseSchema, mode: MigrateMode): readonly string[] {
  const { database, version, knownVersion, pending } = schema;
  const files = pending.map((file) => `  ${file}`);
  const state = `${database} has schema version ${version}`;
  if (version > knownVersion) return [`${state}, this relay knows ${knownVersion}`];
  if (pending.length === 0) return [`${state}, nothing is pending`];
  if (mode === "status") return [`${state}, this relay needs ${knownVersion}; pending:`, ...files];
  if (mode === "dry-run") return [`${state}; would run:`, ...files];
  return [`${database} went from schema version ${version} to ${knownVersion}; ran:`, ...files];
}
