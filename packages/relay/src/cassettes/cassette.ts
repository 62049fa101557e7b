import { LIMITS, type MessageKind, type Part } from "@a2a-relay/protocol";

/** The script of an agent: which messages it matches, and how it answers each. */
export interface Cassette {
  /** Where it was read from, for reports. */
  readonly file: string;
  /** The agent that answers; the player may name another. */
  readonly agent: string | undefined;
  readonly mode: CassetteMode;
  readonly exchanges: readonly Exchange[];
  /** The answer to a task that no exchange matches. */
  readonly otherwise: readonly Step[];
}

/**
 * `loop`: exchanges that match the same message take turns, for ever. `once`: each exchange is played once. `ordered`:
 * the same, and messages must come in the order of the file.
 */
export const CASSETTE_MODES = ["loop", "once", "ordered"] as const;
type CassetteMode = (typeof CASSETTE_MODES)[number];

export interface Exchange {
  readonly name: string | undefined;
  /** Where it begins in its file. */
  readonly line: number;
  readonly match: MessageMatch;
  readonly steps: readonly Step[];
}

/** All given members must hold. */
export interface MessageMatch {
  readonly kinds: readonly MessageKind[];
  readonly text: string | undefined;
  readonly contains: string | undefined;
  readonly regex: RegExp | undefined;
  readonly from: string | undefined;
  readonly subject: string | undefined;
}

export type Step =
  | { readonly act: "status"; readonly text: string | undefined; readonly parts?: readonly Part[] }
  | { readonly act: "delay"; readonly durationMs: number }
  | { readonly act: "artifact"; readonly artifact: ScriptedArtifact }
  /** Both end a turn: the next step runs after the answer of the requester. */
  | { readonly act: "ask"; readonly text: string; readonly parts?: readonly Part[] }
  | { readonly act: "auth"; readonly text: string; readonly parts?: readonly Part[] }
  | { readonly act: "reply"; readonly reply: ScriptedReply }
  /** Completes the task as well; a blocking A2A caller gets the message instead of the task. */
  | { readonly act: "message"; readonly reply: ScriptedReply }
  | { readonly act: "fail"; readonly reason: string; readonly parts?: readonly Part[] }
  | { readonly act: "reject"; readonly reason: string; readonly parts?: readonly Part[] }
  /** Kills the agent in the first `attempts` attempts; later ones skip the step. */
  | { readonly act: "crash"; readonly attempts: number }
  | { readonly act: "silence" };

export interface ScriptedArtifact {
  /** Stable, so that a repeated step makes one artifact. */
  readonly id: string;
  readonly name: string | undefined;
  readonly description: string | undefined;
  /** The first is put unless all are appended, the others are appended. */
  readonly append: boolean;
  readonly chunks: readonly ScriptedChunk[];
  /** Whether the last chunk completes the artifact. */
  readonly lastChunk: boolean;
}

/** Parts, or a delay before the next ones. */
export type ScriptedChunk = readonly Part[] | { readonly durationMs: number };

/** A chunk with the delay before it. */
interface TimedChunk {
  readonly parts: Part[];
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly durationMs: number;
}

export function chunksOf({ append, chunks, lastChunk }: ScriptedArtifact): readonly TimedChunk[] {
  const timed: TimedChunk[] = [];
  let durationMs = 0;
  for (const [index, chunk] of chunks.entries()) {
    if ("durationMs" in chunk) {
      durationMs += chunk.durationMs;
      continue;
    }
    const isLast = index === chunks.length - 1;
    timed.push({
      parts: [...chunk],
      append: append || timed.length > 0,
      lastChunk: isLast && lastChunk,
      durationMs,
    });
    durationMs = 0;
  }
  return timed;
}

export interface ScriptedReply {
  readonly text: string | undefined;
  readonly parts: readonly Part[] | undefined;
  readonly isPartial: boolean;
}

/** The kinds of messages that make a task. Other messages are answered only where an exchange names their kind. */
export const WORK_KINDS: readonly MessageKind[] = ["request", "handoff"];

export function isWorkMatch({ kinds }: MessageMatch): boolean {
  return kinds.every((kind) => WORK_KINDS.includes(kind));
}

/** Whether the step ends the exchange, so that no step may follow. */
export function isEnding(step: Step): boolean {
  if (step.act === "crash") return step.attempts === Number.POSITIVE_INFINITY;
  return ["reply", "message", "fail", "reject", "silence"].includes(step.act);
}

export function isQuestion(step: Step): step is Extract<Step, { act: "ask" | "auth" }> {
  return step.act === "ask" || step.act === "auth";
}

/** The steps for each message of the requester: up to a question, to the next one, to the end. */
export function turnsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  const turns: Step[][] = [[]];
  for (const [index, step] of steps.entries()) {
    turns.at(-1)?.push(step);
    if (isQuestion(step) && index < steps.length - 1) turns.push([]);
  }
  return turns;
}

/** Bounds of one cassette, each with its unit. */
export const CASSETTE_LIMITS = {
  fileBytesMax: 16 * 1024 * 1024,
  exchangesMax: 10_000,
  /** As many as a task can have, each with a delay. */
  stepsMax: 2 * LIMITS.taskUpdatesMax,
  chunksMax: 2 * LIMITS.artifactPartsMax,
  delayMsMax: 86_400_000,
  regexCharsMax: 1_000,
  /** A pattern that takes longer than this on one message is refused. */
  regexMsMax: 250,
} as const;
