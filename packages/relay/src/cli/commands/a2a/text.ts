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
import { type Paint, type TextStyle, factLines, visibleLine, visibleText } from "../../terminal/text.ts";

/** A task for people. The text of the agent is indented, so that it cannot pass for our output. */
export function a2aTaskLines(
  task: A2aTask,
  paint: Paint,
  { withHistory = false }: { readonly withHistory?: boolean } = {},
): readonly string[] {
  const { id, contextId, status } = task;
  const history = listOf(task.history);
  const artifacts = listOf(task.artifacts);
  const said = messageLines(status.message, paint);
  // Some agents put their answer into the history only.
  const isOnlyInHistory = artifacts.length === 0 && said.length === 0;
  const last = isOnlyInHistory ? history.findLast(({ role }) => role === "ROLE_AGENT") : undefined;
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

/** A bare message: the answer of an agent that makes no task. */
export function a2aAnswerLines({ parts }: A2aMessage): readonly string[] {
  return partLines(parts, "\n");
}

/** One event of a stream in one line, with its id first where it has one. */
export function a2aEventLine(event: A2aStreamEvent, paint: Paint): string {
  const { eventId } = event;
  const words = eventWords(event, paint).filter((word) => word !== "");
  return [...(eventId === undefined ? [] : [paint("dim", visibleLine(eventId))]), ...words].join("  ");
}

/** All parts in one line. */
export function a2aLine(parts: readonly Part[] | undefined, glue = "\n"): string {
  return visibleLine(partLines(parts, glue).join("\n"));
}

/** `working` in every dialect; an unknown state as the agent wrote it. */
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
  const lines = partLines(message?.parts, "\n").map(indent);
  const who = message?.role === "ROLE_USER" ? "user" : "agent";
  return lines.length === 0 ? [] : [paint("cyan", who), ...lines];
}

function artifactLines(artifact: Artifact, paint: Paint): readonly string[] {
  const title = `${paint("cyan", "artifact")} ${paint("bold", nameOf(artifact))}`;
  // A streamed artifact has a part for each chunk, which may end in the middle of a word.
  return [title, ...partLines(artifact.parts, "").map(indent)];
}

function nameOf({ name, artifactId }: Artifact): string {
  return visibleLine(textIn(name) || textIn(artifactId));
}

/** `glue` joins adjacent texts. */
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

function indent(line: string): string {
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

/** Agents are not trusted: a promised list of objects may be anything. */
function listOf<Item extends object>(list: readonly Item[] | undefined): readonly Item[] {
  const told: unknown = list;
  if (!Array.isArray(told)) return [];
  return (told as readonly unknown[]).filter(
    (item): item is Item => typeof item === "object" && item !== null,
  );
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}
