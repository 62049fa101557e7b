import { setTimeout as sleep } from "node:timers/promises";
import { RelayError } from "@a2a-relay/protocol";
import type { RelayConfig } from "../../config/relay-config.ts";
import { RELAY_URL } from "../../config/settings.ts";
import { type RunningRelay, startRelay } from "../../server/start-relay.ts";
import type { CommandContext } from "../command-context.ts";
import type { CommandLine } from "../command-line.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { addSettingOptions, loadConfigOf, type SettingFlags } from "../setting-options.ts";
import { readVersion } from "../version.ts";

// What the relay may take after its requests have ended: closing the database.
const CLOSE_MS_MAX = 1_500;

export function addServe(line: CommandLine): void {
  const command = line.command("serve", "Run the relay until SIGTERM or Ctrl-C.", [
    "a2a-relay serve",
    "a2a-relay serve --port 9000 --data ./mail",
    'HOST=0.0.0.0 A2A_RELAY_API_KEY="$(openssl rand -hex 24)" a2a-relay serve',
  ]);
  addSettingOptions(command).action(
    line.run<SettingFlags>(async (context, options) => {
      const { output, signal } = context;
      const { config, unknownVariables } = loadConfigOf(context, options);
      for (const name of unknownVariables)
        await output.note(`${name} is set but is no setting; is it misspelt?`);
      const relay = await start(config);
      await output.show(greeting(relay, config), () => greetingLines(relay, config, output.paint));
      await aborted(signal);
      await output.note("stopping; a second signal stops at once");
      return await stop(relay, config, context);
    }),
  );
}

async function start(config: RelayConfig): Promise<RunningRelay> {
  try {
    return await startRelay(config);
  } catch (reason) {
    throw explainStart(reason, config);
  }
}

/** What the operating system says in codes, as a sentence with advice. */
export function explainStart(reason: unknown, config: RelayConfig): unknown {
  if (!(reason instanceof Error) || reason instanceof RelayError) return reason;
  const code = "code" in reason ? reason.code : undefined;
  const where = `${config.host}:${config.port}`;
  const sentences: Readonly<Record<string, string>> = {
    EADDRINUSE: `${where} is in use by another program; stop it or choose another port with --port`,
    EADDRNOTAVAIL: `${config.host} is no address of this machine; choose another with --host`,
    ENOTFOUND: `${config.host} is no address of this machine; choose another with --host`,
    EACCES: `no permission to listen on ${where} or to write to ${config.dataDirectory}: ${reason.message}`,
    EPERM: `no permission to write to ${config.dataDirectory}; choose another directory with --data`,
    EROFS: `${config.dataDirectory} is read-only; choose another directory with --data`,
    ENOTDIR: `${config.dataDirectory} is not a directory; choose another with --data`,
    EEXIST: `${config.dataDirectory} is not a directory; choose another with --data`,
    ENOSPC: `no space left on the disk of ${config.dataDirectory}`,
  };
  const sentence = typeof code === "string" ? sentences[code] : undefined;
  if (sentence === undefined) return reason;
  return new RelayError("invalid_argument", sentence, { cause: reason });
}

function greeting(relay: RunningRelay, config: RelayConfig): Readonly<Record<string, unknown>> {
  return {
    version: readVersion(),
    url: relay.url,
    data: config.dataDirectory,
    api_key_required: config.apiKey !== undefined,
    docs: `${relay.url}/docs`,
  };
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
  const elsewhere = relay.url === RELAY_URL.fallback ? "" : ` --relay ${relay.url}`;
  return [
    paint("bold", `a2a-relay ${readVersion()}`),
    `  listening   ${paint("cyan", relay.url)}`,
    `  data        ${config.dataDirectory}`,
    `  trust       ${trust}`,
    `  docs        ${relay.url}/docs`,
    "",
    "Try next, in another terminal:",
    `  a2a-relay agents register --id hello@here${elsewhere}`,
    `  a2a-relay doctor${elsewhere}`,
  ];
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
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
