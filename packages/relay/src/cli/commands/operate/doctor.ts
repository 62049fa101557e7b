import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { RelayClient } from "@a2a-relay/client";
import { isLoopbackHost } from "../../../config/addresses.ts";
import { VERSION } from "../../../server/version.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT } from "../../command-line/exit.ts";
import { formatDuration } from "../../terminal/duration.ts";
import { visibleLine } from "../../terminal/text.ts";
import { loadConfigOf } from "./config.ts";

interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** What was found and, when it is wrong, what to do. */
  readonly text: string;
}

const NODE_MAJOR_MIN = 24;
const CLOCK_SKEW_MS_MAX = 5_000;
const FREE_BYTES_MIN = 256 * 1024 * 1024;

export function addDoctor(line: CommandLine): void {
  line
    .command("doctor", "Check this machine and the relay; exit code 1 when something is wrong.", [
      "a2a-relay doctor",
    ])
    .option("--data <directory>", "the data directory to check")
    .action(
      line.run<{ readonly data?: string }>(async (context, options) => {
        const { output } = context;
        const checks = [
          nodeCheck(process.versions.node),
          ...(await relayChecks(context)),
          await dataCheck(context, options.data),
        ];
        const ok = checks.every((check) => check.ok);
        await output.show({ ok, checks }, () =>
          checks.map(({ name, ok: good, text }) =>
            visibleRow(good ? output.paint("green", "ok  ") : output.paint("red", "fail"), name, text),
          ),
        );
        return ok ? EXIT.ok : EXIT.failure;
      }),
    );
}

function visibleRow(mark: string, name: string, text: string): string {
  return `${mark}  ${name.padEnd(10)}${visibleLine(text)}`;
}

export function nodeCheck(version: string): Check {
  const ok = Number(version.split(".")[0]) >= NODE_MAJOR_MIN;
  const text = ok ? `Node ${version}` : `Node ${version} is too old; install Node ${NODE_MAJOR_MIN} or newer`;
  return { name: "node", ok, text };
}

async function relayChecks(context: CommandContext): Promise<readonly Check[]> {
  const clock = new ClockProbe();
  // No retries: the first answer is the diagnosis.
  const client = new RelayClient({ ...context.connection, retries: 0, fetch: clock.fetch });
  const call = { signal: context.signal };
  const reachable = await examine("relay", async () => {
    const { version } = await client.health(call);
    return `${client.url} answers, version ${version}${version === VERSION ? "" : ` (this command is ${VERSION})`}`;
  });
  if (!reachable.ok) return [reachable];
  return [
    reachable,
    clock.check(),
    await examine("ready", async () => {
      await client.ready(call);
      return "it can write";
    }),
    await examine("journal", async () => {
      const { ok, events, problem } = await client.verifyJournal(call);
      if (ok) return `the chain of ${events} events is unbroken`;
      throw new Error(
        `the journal was changed: ${problem ?? "no details"}; copy the data directory before you change anything`,
      );
    }),
  ];
}

async function dataCheck(context: CommandContext, data: string | undefined): Promise<Check> {
  return await examine("data", async () => {
    const { dataDirectory } = loadConfigOf(context, { data }).config;
    if (!isLoopbackHost(new URL(context.connection.url).hostname)) return "on another machine, not checked";
    if ((await stat(dataDirectory).catch(() => undefined)) === undefined) {
      return `${dataDirectory} does not exist; pass --data to check another directory`;
    }
    await access(dataDirectory, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(dataDirectory);
    if (bavail * bsize < FREE_BYTES_MIN) {
      throw new Error(`${dataDirectory} has less than ${FREE_BYTES_MIN / 1024 / 1024} MiB free; make room`);
    }
    return `${dataDirectory} can be written, ${Math.floor((bavail * bsize) / 1024 ** 3)} GiB free`;
  });
}

async function examine(name: string, probe: () => Promise<string>): Promise<Check> {
  try {
    return { name, ok: true, text: await probe() };
  } catch (reason) {
    return { name, ok: false, text: reason instanceof Error ? reason.message : String(reason) };
  }
}

/** Compares the clocks by the Date header of an answer, which has the resolution of a second. */
class ClockProbe {
  #skewMs: number | undefined;

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init);
    const date = Date.parse(response.headers.get("date") ?? "");
    if (this.#skewMs === undefined && !Number.isNaN(date)) this.#skewMs = date - Date.now();
    return response;
  };

  check(): Check {
    const skewMs = this.#skewMs;
    if (skewMs === undefined)
      return { name: "clock", ok: true, text: "the relay does not say what time it is" };
    const ok = Math.abs(skewMs) <= CLOCK_SKEW_MS_MAX;
    const text = ok
      ? "agrees with the relay's"
      : `differs from the relay's by ${formatDuration(Math.abs(skewMs))}; set both by NTP, deadlines depend on them`;
    return { name: "clock", ok, text };
  }
}
