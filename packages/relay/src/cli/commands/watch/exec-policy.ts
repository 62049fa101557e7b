import { backoffMs } from "../../following/keep-trying.ts";
import type { ProgramResult } from "./message-program.ts";

/** What becomes of a message after its program ended. */
export type Verdict =
  | { readonly act: "acknowledge" }
  | { readonly act: "complete"; readonly text: string }
  | { readonly act: "reply"; readonly text: string }
  | { readonly act: "release"; readonly why: string }
  | { readonly act: "fail"; readonly why: string };

export interface VerdictContext {
  /** Whether the program's output is the answer. */
  readonly reply: boolean;
  readonly isTask: boolean;
  /** How often the message was leased, this time included. */
  readonly attempt: number;
  /** From this attempt on a failure is final. */
  readonly attemptsMax: number | undefined;
}

/** Exit code 0 is done; anything else gives the message back, for the next attempt. */
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

/** A program that fails again and again is not run in a tight loop. */
export function pauseAfterFailuresMs(failures: number): number {
  return failures === 0 ? 0 : backoffMs(failures);
}

function failureOf(result: ProgramResult): string | undefined {
  if (result.kind === "killed") return `the program was ended by ${result.by}`;
  if (result.kind === "too_much_output") return "the program printed more than a message can hold";
  return result.code === 0 ? undefined : `the program ended with exit code ${result.code}`;
}
