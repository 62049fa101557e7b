import type { A2aStreamEvent } from "@a2a-relay/client";
import {
  type A2aMessage,
  type A2aState,
  type A2aTask,
  type Artifact,
  type Part,
  readTaskState,
  toV1Part,
} from "@a2a-relay/protocol";
import { formatTime } from "../../terminal/duration.ts";
import type { Paint, TextStyle } from "../../terminal/output.ts";
import { factLines, visibleLine, visibleText } from "../../terminal/text.ts";

/** A task of an A2A agent as people read it. What the agent says is set in, so that it cannot pass for ours. */
export function a2aTaskLines(
  task: A2aTask,
  paint: Paint,
  { withHistory = false }: { readonly withHistory?: boolean } = {},
): readonly string[] {
  const { id, contextId, status } = task;
  const history = listOf(task.history);
  const artifacts = listOf(task.artifacts);
  const said = messageLines(status.message, paint);
  // Some agents give their answer nowhere else.
  const isRemoteRecipient = artifacts.length === 0 && said.length === 0;
  const last = isRemoteRecipient ? history.findLast(({ role }) => role === "ROLE_AGENT") : undefined;
  return [
    `${paint("bold", visibleLine(id))}  ${stateText(status.state, paint)}`,
    ...factLines([
      ["context", textIn(contextId)],
      ["updated", formatTime(textIn(status.timestamp))],
    ]),
    ...(withHistory ? history : []).flatMap((message) => messageLines(message, paint)),
    ...artifacts.flatMap((artifact) => artifactLines(artifact, paint)),
    ...(withHistory ? said : [...said, ...messageLines(last, paint)]),
  ];
}

/** A message with nothing around it: what an agent answers that makes no task of it. */
export function a2aAnswerLines({ parts }: A2aMessage): readonly string[] {
  return partLines(parts, "\n");
}

/** One event of a stream in one line, after its id where the agent numbers them. */
export function a2aEventLine(event: A2aStreamEvent, paint: Paint): string {
  const { eventId } = event;
  const words = eventWords(event, paint).filter((word) => word !== "");
  return [...(eventId === undefined ? [] : [paint("dim", visibleLine(eventId))]), ...words].join("  ");
}

/** What was said, in one line. */
export function a2aLine(parts: readonly Part[] | undefined, glue = "\n"): string {
  return visibleLine(partLines(parts, glue).join("\n"));
}

/** `working`, whatever way the agent writes it; a state that nobody knows as it is. */
export function stateName(state: A2aState): string {
  return readTaskState(state) ?? visibleLine(textIn(state));
}

function eventWords(event: A2aStreamEvent, paint: Paint): readonly string[] {
  const { task, message, statusUpdate, artifactUpdate } = event;
  if (task !== undefined) {
    const { id, status } = task;
    return [
      paint("cyan", "task"),
      visibleLine(id),
      stateText(status.state, paint),
      a2aLine(status.message?.parts),
    ];
  }
  if (statusUpdate !== undefined) {
    const { status } = statusUpdate;
    return [paint("cyan", "status"), stateText(status.state, paint), a2aLine(status.message?.parts)];
  }
  if (artifactUpdate !== undefined) {
    const { artifact, append } = artifactUpdate;
    const name = `${nameOf(artifact)}${append === true ? " +" : ""}`;
    return [paint("cyan", "artifact"), paint("bold", name), a2aLine(artifact.parts, "")];
  }
  return [paint("cyan", "message"), a2aLine(message?.parts)];
}

function messageLines(message: A2aMessage | undefined, paint: Paint): readonly string[] {
  const lines = partLines(message?.parts, "\n").map(setIn);
  const who = message?.role === "ROLE_USER" ? "user" : "agent";
  return lines.length === 0 ? [] : [paint("cyan", who), ...lines];
}

function artifactLines(artifact: Artifact, paint: Paint): readonly string[] {
  const title = `${paint("cyan", "artifact")} ${paint("bold", nameOf(artifact))}`;
  // One that was streamed has a part for each piece, in the middle of words.
  return [title, ...partLines(artifact.parts, "").map(setIn)];
}

function nameOf({ name, artifactId }: Artifact): string {
  return visibleLine(textIn(name) || textIn(artifactId));
}

/** `glue` stands between texts that follow each other. */
function partLines(parts: readonly Part[] | undefined, glue: string): readonly string[] {
  const lines: string[] = [];
  let text: string | undefined;
  const flush = (): void => {
    if (text !== undefined) lines.push(...visibleText(text).replace(/\n+$/, "").split("\n"));
    text = undefined;
  };
  for (const part of listOf(parts).map(toV1Part)) {
    if (typeof part["text"] === "string") {
      text = text === undefined ? part["text"] : `${text}${glue}${part["text"]}`;
      continue;
    }
    flush();
    lines.push(visibleLine(otherPart(part)));
  }
  flush();
  return lines;
}

function otherPart({ data, url, raw, filename, mediaType }: Part): string {
  const facts = [filename, mediaType].filter((fact) => typeof fact === "string" && fact !== "");
  const about = facts.length === 0 ? "" : ` ${facts.join(", ")}`;
  if (data !== undefined) return `[data${about}] ${JSON.stringify(data)}`;
  if (typeof url === "string") return `[link${about}] ${url}`;
  if (typeof raw === "string") return `[file${about}; --json shows what is in it]`;
  return `[something else${about}; --json shows it]`;
}

function setIn(line: string): string {
  return `  ${line}`;
}

function stateText(state: A2aState, paint: Paint): string {
  const name = stateName(state);
  return paint(STATE_STYLE[name] ?? "yellow", name);
}

const STATE_STYLE: Readonly<Record<string, TextStyle>> = {
  completed: "green",
  failed: "red",
  rejected: "red",
  canceled: "red",
};

/** Agents are strangers: where a list of objects is promised there may be something else. */
function listOf<Item extends object>(list: readonly Item[] | undefined): readonly Item[] {
  const told: unknown = list;
  if (!Array.isArray(told)) return [];
  return (told as readonly unknown[]).filter(
    (item): item is Item => typeof item === "object" && item !== null,
  );
}

/** A name that is not text is none. */
function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}
