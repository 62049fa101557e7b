import { spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { LIMITS, type MailboxItem, RelayError } from "@a2a-relay/protocol";
import type { Environment } from "../../../config/setting-reader.ts";
import { backoffMs } from "../../following/keep-trying.ts";

/** How the program of a message ended. */
export type ProgramResult =
  | { readonly kind: "exited"; readonly code: number; readonly stdout: string }
  | { readonly kind: "killed"; readonly by: string }
  | { readonly kind: "too_much_output" };

export interface ProgramOptions {
  readonly argv: readonly string[];
  readonly item: MailboxItem;
  readonly env: Environment;
  /** Keeps the output as the reply; otherwise it goes to `stdout`. */
  readonly capture: boolean;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Ends the program. A string as its reason says why. */
  readonly signal: AbortSignal;
}

/** The output must fit into the body of a message, beside its other members. */
export const CAPTURED_BYTES_MAX = LIMITS.bodyBytesMax / 2;
const KILL_MS = 5_000;

/**
 * Runs a program with the message as JSON on its stdin. There is no shell, and nothing of the message becomes part of
 * the command line.
 */
export function runMessageProgram(options: ProgramOptions): Promise<ProgramResult> {
  const [program = "", ...programArguments] = options.argv;
  const child = spawn(program, programArguments, {
    env: { ...options.env, ...messageEnvironment(options.item) },
    shell: false,
    stdio: ["pipe", "pipe", "pipe"],
  });
  // A program may ignore its stdin: the broken pipe is no error.
  child.stdin.on("error", () => {});
  child.stdin.end(`${JSON.stringify(options.item.message)}\n`);
  child.stderr.pipe(options.stderr, { end: false });
  const captured = options.capture ? new CapturedText() : undefined;
  if (captured === undefined) child.stdout.pipe(options.stdout, { end: false });
  else child.stdout.on("data", (chunk: Buffer) => captured.add(chunk));

  return new Promise((resolve, reject) => {
    let killTimer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      child.kill("SIGTERM");
      killTimer = setTimeout(() => child.kill("SIGKILL"), KILL_MS);
      // A process that it started may keep the pipes open for ever.
      child.once("exit", () => {
        child.stdout.destroy();
        child.stderr.destroy();
      });
    };
    const finish = (): void => {
      clearTimeout(killTimer);
      options.signal.removeEventListener("abort", stop);
    };
    child.once("error", (cause) => {
      finish();
      reject(
        new RelayError("invalid_argument", `cannot start ${JSON.stringify(program)}: ${cause.message}`, {
          cause,
        }),
      );
    });
    child.once("close", (code, signal) => {
      finish();
      if (code === null) resolve({ kind: "killed", by: endedBy(options.signal) ?? signal ?? "a signal" });
      else if (captured?.overflowed === true) resolve({ kind: "too_much_output" });
      else resolve({ kind: "exited", code, stdout: captured?.text ?? "" });
    });
    options.signal.addEventListener("abort", stop, { once: true });
    if (options.signal.aborted) stop();
  });
}

function endedBy({ reason }: AbortSignal): string | undefined {
  return typeof reason === "string" ? reason : undefined;
}

/** Passed as values: no shell ever expands them. */
function messageEnvironment(item: MailboxItem): Readonly<Record<string, string>> {
  const { message, lease, task_id: taskId } = item;
  return {
    A2A_MESSAGE_ID: message.id,
    A2A_FROM: message.from,
    A2A_TO: message.to,
    A2A_TYPE: message.type,
    A2A_THREAD_ID: message.thread_id,
    A2A_TASK_ID: taskId ?? "",
    A2A_LEASE_ID: lease?.id ?? "",
  };
}

class CapturedText {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  add(chunk: Buffer): void {
    this.#size += chunk.length;
    if (!this.overflowed) this.#chunks.push(chunk);
  }

  get overflowed(): boolean {
    return this.#size > CAPTURED_BYTES_MAX;
  }

  get text(): string {
    return Buffer.concat(this.#chunks)
      .toString("utf8")
      .replace(/\r?\n$/, "");
  }
}

/** What the worker does with a message after its program ended. */
export type Verdict =
  | { readonly act: "acknowledge" }
  | { readonly act: "complete"; readonly text: string }
  | { readonly act: "reply"; readonly text: string }
  | { readonly act: "release"; readonly why: string }
  | { readonly act: "fail"; readonly why: string };

export interface VerdictContext {
  /** Whether the program's output is the reply. */
  readonly reply: boolean;
  readonly isTask: boolean;
  /** How often the message was leased, including this lease. */
  readonly attempt: number;
  /** From this attempt on a failure is final. */
  readonly attemptsMax: number | undefined;
}

/** Exit code 0 settles the message; any other releases it for the next attempt. */
export function decideVerdict(result: ProgramResult, context: VerdictContext): Verdict {
  const why = failureOf(result);
  if (why !== undefined) {
    const exhausted = context.attemptsMax !== undefined && context.attempt >= context.attemptsMax;
    return exhausted ? { act: "fail", why: `${why} at attempt ${context.attempt}` } : { act: "release", why };
  }
  const text = result.kind === "exited" ? result.stdout : "";
  if (context.reply && context.isTask) return { act: "complete", text };
  if (context.reply && text !== "") return { act: "reply", text };
  return { act: "acknowledge" };
}

/** Backoff, so that a failing program does not run in a tight loop. */
export function pauseAfterFailuresMs(failures: number): number {
  return failures === 0 ? 0 : backoffMs(failures);
}

function failureOf(result: ProgramResult): string | undefined {
  if (result.kind === "killed") return `the program was ended by ${result.by}`;
  if (result.kind === "too_much_output") return "the program printed more than a message can hold";
  return result.code === 0 ? undefined : `the program ended with exit code ${result.code}`;
}
