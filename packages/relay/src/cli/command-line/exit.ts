import { RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { CommanderError, InvalidArgumentError } from "commander";
import { type CliIo, Output } from "../terminal/output.ts";
import { visibleLine } from "../terminal/text.ts";

/** The exit codes of every command; `docs/reference/cli.md` lists the same. */
export const EXIT = {
  ok: 0,
  /** The relay refused, or an operation or an A2A task failed. */
  failure: 1,
  /** The command line itself is wrong; the relay was not called. */
  usage: 2,
  /** `wait` saw no message in time. */
  timedOut: 3,
  /** No relay, or no A2A agent, answered at the address. */
  unreachable: 4,
  /** Ended by a signal, such as Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const ADVICE: Partial<Readonly<Record<RelayErrorCode, string>>> = {
  unauthenticated: "give a key that works with A2A_RELAY_API_KEY or --api-key",
  unknown_agent: "`a2a-relay agents` lists who is registered, `a2a-relay agents register` adds one",
};

/** Prints on stderr why a command ended early, and returns its exit code. */
export async function reportFailure(reason: unknown, io: CliIo): Promise<ExitCode> {
  if (isBrokenPipe(reason)) return EXIT.ok;
  if (io.signal.aborted && !(reason instanceof RelayError)) return EXIT.interrupted;
  const output = new Output(io, { json: false, color: true });
  if (reason instanceof InvalidArgumentError) {
    await output.error(visibleLine(reason.message));
    return EXIT.usage;
  }
  // Commander has already printed the mistake, or the requested help.
  if (reason instanceof CommanderError) return reason.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (reason instanceof RelayError) {
    await output.error(visibleLine(reason.message), detailLines(reason));
    return reason.code === "unavailable" ? EXIT.unreachable : EXIT.failure;
  }
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
  await output.error(`unexpected, please report it: ${text}`);
  return EXIT.failure;
}

/** The reader of our output has closed it. */
function isBrokenPipe(reason: unknown): boolean {
  return (
    reason instanceof Error &&
    "code" in reason &&
    (reason.code === "EPIPE" || reason.code === "ERR_STREAM_DESTROYED")
  );
}

/** Only details that the message does not contain. `required` is left out: the message names what is missing. */
function detailLines(error: RelayError): readonly string[] {
  const { required: _, ...told } = error.details ?? {};
  const details = Object.entries(told).flatMap(([name, value]) => {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    const texts = values.map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
    const news = texts.filter((text) => !error.message.includes(text));
    return news.length === 0 ? [] : [visibleLine(`  ${name}: ${news.join(", ")}`)];
  });
  const advice = ADVICE[error.code];
  return advice === undefined ? details : [...details, `  ${advice}`];
}
