import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Complain, integerSetting, type Setting, switchSetting } from "./setting.ts";

/** Which store a relay uses. */
export type DatabaseChoice =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

const EXPECTED =
  "postgres://user:password@host:5432/name for PostgreSQL, or sqlite:/path/to/file; without it SQLite in the data directory";

const TIMEOUT_MS_MAX = 86_400_000;

/** A URL whose host is a socket directory: `postgres://user@/name?host=/cloudsql/…`. */
const WITHOUT_HOST = /^(postgres(?:ql)?:\/\/[^/@?#]*@)(?=\/)/;

const database: Setting<DatabaseChoice | undefined> = {
  variables: ["A2A_RELAY_DATABASE_URL", "DATABASE_URL"],
  flag: "database",
  placeholder: "url",
  meaning:
    "A PostgreSQL database that several relays may share, or an SQLite file. Without it: SQLite in the data directory.",
  fallback: undefined,
  secret: true,
  parse: parseDatabaseUrl,
};

const databasePoolMax = integerSetting({
  variables: ["A2A_RELAY_DATABASE_POOL_MAX"],
  flag: "database-pool-max",
  meaning: "Connections to PostgreSQL that this relay opens at most, beside the one that listens.",
  fallback: 10,
  minimum: 2,
  maximum: 1_000,
});

const databaseCa: Setting<string | undefined> = {
  variables: ["A2A_RELAY_DATABASE_CA"],
  flag: "database-ca",
  placeholder: "file",
  meaning: "The certificate of the authority that PostgreSQL's own certificate must come from; implies TLS.",
  fallback: undefined,
  parse: (text, complain) => (text.includes("\0") ? complain("a file path") : resolve(text)),
};

const databaseStatementTimeoutMs = integerSetting({
  variables: ["A2A_RELAY_DATABASE_STATEMENT_TIMEOUT_MS"],
  flag: "database-statement-timeout-ms",
  meaning: "How long PostgreSQL works on one statement before it gives up; 0 means without end.",
  fallback: 30_000,
  minimum: 0,
  maximum: TIMEOUT_MS_MAX,
  remark: "0 waits without end",
});

const databaseLockTimeoutMs = integerSetting({
  variables: ["A2A_RELAY_DATABASE_LOCK_TIMEOUT_MS"],
  flag: "database-lock-timeout-ms",
  meaning: "How long a statement waits for a lock of PostgreSQL; 0 means without end.",
  fallback: 5_000,
  minimum: 0,
  maximum: TIMEOUT_MS_MAX,
  remark: "0 waits without end",
});

const databaseRls = switchSetting({
  variables: ["A2A_RELAY_DATABASE_RLS"],
  flag: "database-rls",
  meaning:
    "Whether PostgreSQL itself keeps tenants apart, by row-level security. It needs the role a2a_relay_tenant.",
  fallback: false,
});

const migrate = switchSetting({
  variables: ["A2A_RELAY_MIGRATE"],
  flag: "migrate",
  meaning:
    "Whether pending migrations of PostgreSQL run at the start. In an empty database and in SQLite they always do.",
  fallback: false,
});

/** How a relay connects to its database. */
export const CONNECTION_SETTINGS = {
  database,
  databaseCa,
  databaseStatementTimeoutMs,
  databaseLockTimeoutMs,
} as const;

export const DATABASE_SETTINGS = { ...CONNECTION_SETTINGS, databasePoolMax, databaseRls, migrate } as const;

export function parseDatabaseUrl(text: string, complain: Complain): DatabaseChoice {
  if (text.includes("\0")) return complain(EXPECTED);
  if (/^sqlite:/i.test(text)) return { kind: "sqlite", path: sqlitePath(text, complain) };
  if (!/^postgres(?:ql)?:\/\//i.test(text)) return complain(EXPECTED);
  const url = text.replace(WITHOUT_HOST, "$1localhost");
  if (!URL.canParse(url)) return complain(EXPECTED);
  return { kind: "postgres", url };
}

/** `sqlite:/path`, `sqlite:///path` and `sqlite:path`. */
function sqlitePath(text: string, complain: Complain): string {
  const rest = text.slice("sqlite:".length);
  const path = rest.startsWith("///") ? fileURLToPath(`file:${rest}`) : decodeURIComponent(rest);
  if (path === "" || path.startsWith("//")) return complain(EXPECTED);
  if (path === ":memory:" || path === "/:memory:") {
    return complain("a file, because what is only in memory would be lost when the relay stops");
  }
  return path;
}
