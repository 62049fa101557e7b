import { setTimeout as sleep } from "node:timers/promises";
import { operations, RelayError } from "@a2a-relay/protocol";
import type { RelayConfig } from "../../../config/relay-config.ts";
import { RELAY_URL } from "../../../config/settings.ts";
import type { ConnectedDatabase } from "../../../server/open-store.ts";
import type { RunningRelay } from "../../../server/start-relay.ts";
import { VERSION } from "../../../server/version.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { visibleLine } from "../../terminal/text.ts";
import { addSettingOptions, loadConfigOf, type SettingFlags } from "./config.ts";

// For closing the database after the last request.
const CLOSE_MS_MAX = 1_500;

export function addServe(line: CommandLine): void {
  const command = line.command("serve", "Run the relay until SIGTERM or Ctrl-C.", [
    "a2a-relay serve",
    "a2a-relay serve --port 9000 --data ./relay-data",
    "a2a-relay serve --database postgres://relay@db.example/relay --migrate",
    'HOST=0.0.0.0 A2A_RELAY_API_KEY="$(openssl rand -hex 24)" a2a-relay serve',
  ]);
  addSettingOptions(command).action(
    line.run<SettingFlags>(async (context, options) => {
      const { output } = context;
      const { config, unknownVariables } = loadConfigOf(context, options);
      for (const name of unknownVariables)
        await output.note(`${name} is set but is no setting; is it misspelt?`);
      const relay = await start(config, context);
      if (relay === undefined) return EXIT.failure;
      // A relay whose output is closed goes on.
      await output
        .show(greeting(relay, config), () => greetingLines(relay, config, output.paint))
        .catch(() => undefined);
      await context.interrupted();
      await output.note("stopping; a second signal stops at once").catch(() => undefined);
      return await stop(relay, config, context);
    }),
  );
}

/** Undefined after an error that was printed. */
async function start(config: RelayConfig, { output }: CommandContext): Promise<RunningRelay | undefined> {
  // Loaded only here: without the server the other commands start in half the time.
  const { startRelay } = await import("../../../server/start-relay.ts");
  try {
    return await startRelay(config);
  } catch (reason) {
    if (!(reason instanceof RelayError)) throw reason;
    await output.error(visibleLine(reason.message));
    return undefined;
  }
}

function greeting(relay: RunningRelay, config: RelayConfig): Readonly<Record<string, unknown>> {
  return {
    version: VERSION,
    url: relay.url,
    data: config.dataDirectory,
    api_key_required: config.apiKey !== undefined,
    docs: `${relay.url}${operations.service.docs.path}`,
    ...(relay.grpcPort === undefined ? {} : { grpc_port: relay.grpcPort }),
    ...(relay.database === undefined ? {} : { database: databaseView(relay.database) }),
  };
}

function databaseView({ name, schemaVersion, otherRelays }: ConnectedDatabase) {
  return { kind: "postgres", name, schema_version: schemaVersion, other_relays: otherRelays };
}

function databaseLine({ name, schemaVersion, otherRelays }: ConnectedDatabase): string {
  const others = `${otherRelays} other ${otherRelays === 1 ? "relay" : "relays"}`;
  return `  database    postgres ${name}, schema version ${schemaVersion}, ${others}`;
}

function greetingLines(
  relay: RunningRelay,
  config: RelayConfig,
  paint: CommandContext["output"]["paint"],
): readonly string[] {
  const trust =
    config.apiKey === undefined
      ? "every user of this machine is trusted; set A2A_RELAY_API_KEY to ask for a key"
      : "an API key is required";
  const withKey = config.apiKey === undefined ? "" : ", with the same A2A_RELAY_API_KEY";
  const relayFlag = relay.url === RELAY_URL.fallback ? "" : ` --relay ${relay.url}`;
  return [
    paint("bold", `a2a-relay ${VERSION}`),
    `  listening   ${paint("cyan", relay.url)}`,
    ...(relay.grpcPort === undefined ? [] : [`  gRPC        port ${relay.grpcPort}`]),
    `  data        ${config.dataDirectory}`,
    ...(relay.database === undefined ? [] : [databaseLine(relay.database)]),
    `  trust       ${trust}`,
    `  docs        ${relay.url}${operations.service.docs.path}`,
    "",
    `Try next, in another terminal${withKey}:`,
    `  npx a2a-relay agents register --id hello@here${relayFlag}`,
    `  npx a2a-relay doctor${relayFlag}`,
  ];
}

async function stop(relay: RunningRelay, config: RelayConfig, { output }: CommandContext): Promise<ExitCode> {
  const limit = new AbortController();
  const late = sleep(config.drainMs + CLOSE_MS_MAX, "late", { signal: limit.signal }).catch(() => "cleared");
  const outcome = await Promise.race([relay[Symbol.asyncDispose]().then(() => "stopped"), late]);
  limit.abort();
  if (outcome === "stopped") return EXIT.ok;
  await output.error("the relay did not stop in time; all that was answered is on disk");
  return EXIT.failure;
}
