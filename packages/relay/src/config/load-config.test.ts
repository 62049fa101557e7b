import assert from "node:assert/strict";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { loadClientConfig, loadConfig, loadConfigWithSources, loadConnectionConfig } from "./load-config.ts";
import type { ConfigSources } from "./setting-reader.ts";

const KEY = "0123456789abcdef";

function load(sources: Partial<ConfigSources> = {}): ReturnType<typeof loadConfig> {
  return loadConfig({ flags: {}, env: {}, dotenv: {}, ...sources });
}

function refusal(sources: Partial<ConfigSources>): string {
  try {
    load(sources);
  } catch (reason) {
    assert.ok(reason instanceof RelayError);
    assert.equal(reason.code, "invalid_argument");
    return reason.message;
  }
  return assert.fail("the configuration was accepted");
}

describe("loadConfig", () => {
  it("fills everything when nothing is set", () => {
    assert.deepEqual(load(), {
      host: "127.0.0.1",
      port: 8080,
      dataDirectory: join(homedir(), ".a2a-relay"),
      database: undefined,
      databaseCa: undefined,
      databaseStatementTimeoutMs: 30_000,
      databaseLockTimeoutMs: 5_000,
      databasePoolMax: 10,
      databaseRls: false,
      migrate: false,
      anchorDirectory: join(homedir(), ".a2a-relay", "anchors"),
      archiveDirectory: join(homedir(), ".a2a-relay", "archive"),
      publicUrl: undefined,
      apiKey: undefined,
      capabilities: false,
      allowedOrigins: [],
      egressAllow: [],
      logLevel: "info",
      messageTtlMs: 604_800_000,
      mailboxOpenMax: 100_000,
      leaseAttemptsMax: 3,
      sweepIntervalMs: 1_000,
      messageRetentionMs: 2_592_000_000,
      journalRetentionMs: 7_776_000_000,
      anchorIntervalMs: 10_000,
      checkpointPages: 2_000,
      drainMs: 8_000,
      heartbeatMs: 15_000,
      streamStallMs: 30_000,
      pushAttemptsMs: [0, 5_000, 30_000, 120_000],
      pushTimeoutMs: 15_000,
      a2aBlockMs: 30_000,
      grpcPort: undefined,
      cardDialect: "1.0",
      retryScheduler: undefined,
    });
  });

  it("keeps anchors and the archive with the data unless another directory is named", () => {
    const { anchorDirectory, archiveDirectory } = load({ flags: { data: "/relay" } });
    assert.deepEqual(
      [anchorDirectory, archiveDirectory],
      [resolve("/relay/anchors"), resolve("/relay/archive")],
    );
    const env = { A2A_RELAY_ANCHOR_DIR: "~/other-disk", A2A_RELAY_ARCHIVE_DIR: "/mnt/存档" };
    const named = load({ flags: { data: "/relay" }, env });
    assert.equal(named.anchorDirectory, join(homedir(), "other-disk"));
    assert.equal(named.archiveDirectory, resolve("/mnt/存档"));
  });

  it("is frozen, its lists and parts too", () => {
    const config = load({ env: { A2A_RELAY_AUTO_RETRY_SCHEDULER: "on" } });
    for (const part of [
      config,
      config.allowedOrigins,
      config.egressAllow,
      config.retryScheduler,
      config.retryScheduler?.policy,
    ]) {
      assert.ok(Object.isFrozen(part));
    }
  });

  it("takes a flag before the environment, and the environment before .env", () => {
    const dotenv = { PORT: "1", HOST: "127.0.0.3", A2A_RELAY_LOG_LEVEL: "debug" };
    const env = { PORT: "2", HOST: "127.0.0.2" };
    const config = load({ flags: { port: "3" }, env, dotenv });
    assert.deepEqual([config.port, config.host, config.logLevel], [3, "127.0.0.2", "debug"]);
  });

  it("treats a variable that is set to nothing as not set", () => {
    assert.equal(load({ env: { PORT: " ", A2A_RELAY_API_KEY: "" } }).port, 8080);
  });

  it("knows the key by both of its names and prefers the longer one", () => {
    assert.equal(load({ env: { RELAY_API_KEY: KEY } }).apiKey, KEY);
    assert.equal(load({ env: { RELAY_API_KEY: KEY, A2A_RELAY_API_KEY: `${KEY}2` } }).apiKey, `${KEY}2`);
  });

  it("makes the data directory absolute and knows the home directory", () => {
    assert.equal(load({ flags: { data: "relay" } }).dataDirectory, resolve("relay"));
    assert.equal(load({ dotenv: { A2A_RELAY_DATA: "~/relay" } }).dataDirectory, join(homedir(), "relay"));
  });

  it("takes the slash off the end of the public URL", () => {
    const config = load({ env: { A2A_RELAY_PUBLIC_URL: "https://example.org/relay/" } });
    assert.equal(config.publicUrl, "https://example.org/relay");
  });

  it("reads the times of a push as a list", () => {
    const times = (A2A_RELAY_PUSH_ATTEMPTS_MS: string) => load({ env: { A2A_RELAY_PUSH_ATTEMPTS_MS } });
    assert.deepEqual(times("0, 50,50 ,604800000").pushAttemptsMs, [0, 50, 50, 604_800_000]);
    assert.deepEqual(times("7").pushAttemptsMs, [7]);
    const tooMany = Array.from({ length: 21 }, (_, index) => index).join(",");
    for (const wrong of ["5,4", "0,,5", "-1", "0,1.5", "1e3", "soon", "604800001", tooMany]) {
      assert.match(
        refusal({ env: { A2A_RELAY_PUSH_ATTEMPTS_MS: wrong } }),
        /A2A_RELAY_PUSH_ATTEMPTS_MS=.*: expected 1 to 20 whole numbers from 0 to 604800000, none smaller/,
        wrong,
      );
    }
  });

  it("reads in which version cards are written", () => {
    const read = (A2A_RELAY_CARD_DIALECT: string) => load({ env: { A2A_RELAY_CARD_DIALECT } });
    assert.deepEqual([read("0.3").cardDialect, read("1.0").cardDialect], ["0.3", "1.0"]);
    for (const wrong of ["1", "0.2", "v1.0"]) {
      const sources = { env: { A2A_RELAY_CARD_DIALECT: wrong } };
      assert.match(refusal(sources), /A2A_RELAY_CARD_DIALECT=.*: expected 1\.0 or 0\.3/, wrong);
    }
  });

  it("reads allowed origins as a list", () => {
    const text = "https://a.example, http://localhost:3000/";
    const config = load({ env: { A2A_RELAY_ALLOWED_ORIGINS: text } });
    assert.deepEqual(config.allowedOrigins, ["https://a.example", "http://localhost:3000"]);
  });

  it("reads what it may call beside public addresses as a list of CIDRs", () => {
    const config = load({ env: { A2A_RELAY_EGRESS_ALLOW: "10.0.0.0/8, 127.0.0.1" } });
    assert.deepEqual(config.egressAllow, ["10.0.0.0/8", "127.0.0.1/32"]);
    assert.deepEqual(load({}).egressAllow, []);
  });

  it("reads the retry scheduler with its bounds", () => {
    const env = { A2A_RELAY_AUTO_RETRY_SCHEDULER: "Yes", A2A_RELAY_AUTO_RETRY_MAX_REQUEUES: "5" };
    assert.deepEqual(load({ env }).retryScheduler, {
      intervalMs: 60_000,
      policy: { min_lease_age_ms: 300_000, max_attempts: 3, max_requeues: 5, scan_limit: 100 },
    });
  });

  for (const [word, on] of Object.entries({
    1: true,
    true: true,
    on: true,
    0: false,
    no: false,
    OFF: false,
  })) {
    it(`reads ${word} as the scheduler ${on ? "on" : "off"}`, () => {
      const { retryScheduler } = load({ env: { A2A_RELAY_AUTO_RETRY_SCHEDULER: word } });
      assert.equal(retryScheduler !== undefined, on);
    });
  }

  it("tells a mistake in the scheduler's settings even while it is off", () => {
    const message = refusal({ env: { A2A_RELAY_AUTO_RETRY_INTERVAL_MS: "0" } });
    assert.match(
      message,
      /^A2A_RELAY_AUTO_RETRY_INTERVAL_MS="0" from the environment: expected a whole number from 1/,
    );
  });
});

describe("loadConfig refuses", () => {
  const cases: readonly (readonly [string, Partial<ConfigSources>, RegExp])[] = [
    [
      "a port that is no number",
      { flags: { port: "http" } },
      /^--port "http": expected a whole number from 0/,
    ],
    ["a port beyond 65535", { env: { PORT: "65536" } }, /^PORT="65536" from the environment/],
    ["a negative port", { dotenv: { PORT: "-1" } }, /^PORT="-1" from \.env/],
    ["an unknown log level", { env: { A2A_RELAY_LOG_LEVEL: "loud" } }, /expected one of silent, error/],
    ["a host with a port", { env: { HOST: "127.0.0.1:80" } }, /without a scheme or a port/],
    [
      "another word for the scheduler",
      { env: { A2A_RELAY_AUTO_RETRY_SCHEDULER: "maybe" } },
      /expected 1, true/,
    ],
    ["a public URL with a query", { flags: { "public-url": "https://a.example/?b" } }, /--public-url/],
    ["a public URL of another scheme", { flags: { "public-url": "ftp://a.example" } }, /http or https/],
    ["every origin", { env: { A2A_RELAY_ALLOWED_ORIGINS: "*" } }, /"\*" is none/],
    ["an origin with a path", { env: { A2A_RELAY_ALLOWED_ORIGINS: "https://a.example/x" } }, /is none/],
    ["a name to call", { flags: { "egress-allow": "localhost" } }, /^--egress-allow .*"localhost" is none/],
    ["a time to live of nothing", { env: { A2A_RELAY_MESSAGE_TTL_MS: "0" } }, /from 1000 to/],
    [
      "events that go before their messages",
      { env: { A2A_RELAY_JOURNAL_RETENTION_MS: "1" } },
      /at least A2A_RELAY_MAIL_RETENTION_MS/,
    ],
    [
      "messages for ever with events that are not",
      { env: { A2A_RELAY_MAIL_RETENTION_MS: "0" } },
      /\(the default\): expected 0/,
    ],
    [
      "more requeues than a scan checks",
      { env: { A2A_RELAY_AUTO_RETRY_MAX_REQUEUES: "9", A2A_RELAY_AUTO_RETRY_SCAN_LIMIT: "8" } },
      /at most A2A_RELAY_AUTO_RETRY_SCAN_LIMIT \(8\)/,
    ],
  ];
  for (const [what, sources, expected] of cases) {
    it(what, () => assert.match(refusal(sources), expected));
  }

  it("an API key that is short, and does not show it", () => {
    const message = refusal({ env: { RELAY_API_KEY: "secret-15-chars" } });
    assert.match(message, /^RELAY_API_KEY=\(15 characters\) from the environment: expected 16 to/);
    assert.doesNotMatch(message, /secret/);
  });

  for (const host of ["0.0.0.0", "::", "192.168.1.5", "relay.example.org"]) {
    it(`${host} without an API key, and says what to do`, () => {
      const message = refusal({ env: { HOST: host } });
      assert.match(message, /set A2A_RELAY_API_KEY or bind 127\.0\.0\.1/);
      assert.equal(load({ env: { HOST: host, A2A_RELAY_API_KEY: KEY } }).host, host);
    });
  }
});

describe("loadConfigWithSources", () => {
  it("says where each value comes from and hides the key", () => {
    const { settings } = loadConfigWithSources({
      flags: { port: "1" },
      env: { RELAY_API_KEY: KEY },
      dotenv: { HOST: "127.0.0.9" },
    });
    const find = (flag: string): unknown => settings.find((setting) => setting.flag === flag);
    assert.deepEqual(find("--port"), { variable: "PORT", flag: "--port", source: "flag", value: 1 });
    assert.deepEqual(find("--api-key"), {
      variable: "RELAY_API_KEY",
      flag: "--api-key",
      source: "environment",
      value: "(set)",
    });
    assert.deepEqual(find("--host"), {
      variable: "HOST",
      flag: "--host",
      source: ".env",
      value: "127.0.0.9",
    });
    assert.doesNotMatch(JSON.stringify(settings), new RegExp(KEY));
  });

  it("names variables that begin like settings and are none", () => {
    const env = { A2A_RELAY_URL: "http://127.0.0.1:1", A2A_RELAY_DRIAN_MS: "1", PATH: "/bin" };
    const { unknownVariables } = loadConfigWithSources({ flags: {}, env, dotenv: { A2A_RELAY_PORT: "1" } });
    assert.deepEqual(unknownVariables, ["A2A_RELAY_DRIAN_MS", "A2A_RELAY_PORT"]);
  });
});

describe("loadConnectionConfig", () => {
  it("reads how to reach the database, whatever is wrong with other settings", () => {
    const env = {
      HOST: "0.0.0.0",
      DATABASE_URL: "postgres://relay@db.example/relay",
      A2A_RELAY_DATABASE_CA: "ca.pem",
      A2A_RELAY_DATABASE_STATEMENT_TIMEOUT_MS: "0",
      A2A_RELAY_DATABASE_LOCK_TIMEOUT_MS: "1000",
    };
    assert.deepEqual(loadConnectionConfig({ flags: {}, env, dotenv: {} }), {
      database: { kind: "postgres", url: "postgres://relay@db.example/relay" },
      databaseCa: resolve("ca.pem"),
      databaseStatementTimeoutMs: 0,
      databaseLockTimeoutMs: 1_000,
    });
  });
});

describe("loadClientConfig", () => {
  it("talks to the relay of this machine unless told otherwise", () => {
    const config = loadClientConfig({ flags: {}, env: {}, dotenv: {} });
    assert.deepEqual(config, { url: "http://127.0.0.1:8080", apiKey: undefined });
  });

  it("takes the address from the flag before the environment", () => {
    const env = { A2A_RELAY_URL: "http://127.0.0.1:1" };
    assert.equal(loadClientConfig({ flags: {}, env, dotenv: {} }).url, "http://127.0.0.1:1");
    const flags = { relay: "http://127.0.0.1:2/" };
    assert.equal(loadClientConfig({ flags, env, dotenv: {} }).url, "http://127.0.0.1:2");
  });

  it("takes the key from .env, but never the address", () => {
    const dotenv = { A2A_RELAY_URL: "http://other.example", A2A_RELAY_API_KEY: KEY };
    const config = loadClientConfig({ flags: {}, env: {}, dotenv });
    assert.deepEqual(config, { url: "http://127.0.0.1:8080", apiKey: KEY });
  });
});
