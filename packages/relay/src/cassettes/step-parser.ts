import { LIMITS, type Part, textOfParts } from "@a2a-relay/protocol";
import {
  CASSETTE_LIMITS,
  isEnding,
  isQuestion,
  type ScriptedArtifact,
  type ScriptedChunk,
  type ScriptedReply,
  type Step,
} from "./cassette.ts";
import type { YamlNode } from "./yaml-node.ts";

const STEP_NAMES = [
  "status",
  "delay_ms",
  "artifact",
  "ask",
  "auth",
  "reply",
  "message",
  "fail",
  "reject",
  "crash",
  "silence",
] as const;
type StepName = (typeof STEP_NAMES)[number];

/** Content beside or instead of a text. */
type Content = Readonly<Partial<Record<"text" | "data" | "parts", YamlNode>>>;

const WORDS = "a text, or a map with text, data or parts";

/** Steps for messages that are no task. */
const MESSAGE_ACTS: readonly Step["act"][] = ["delay", "reply", "fail", "crash", "silence"];

/** The steps of an answer to a task: the last one must end it. */
export function parseWorkSteps(node: YamlNode): readonly Step[] {
  const steps = parseSteps(node);
  const last = steps.at(-1);
  if (last === undefined || !(isEnding(last) || isQuestion(last))) {
    throw node.error(
      "expected a last step that ends it: reply, message, fail, reject, silence or crash: true",
    );
  }
  if (isQuestion(last)) {
    throw node.error(`expected a step behind the last "${last.act}", for when the requester has answered`);
  }
  return steps;
}

/** The steps of an answer to other messages. An empty list only acknowledges. */
export function parseMessageSteps(node: YamlNode): readonly Step[] {
  const nodes = node.items(CASSETTE_LIMITS.stepsMax);
  const steps = parseSteps(node);
  for (const [index, step] of steps.entries()) {
    const { act } = step;
    // A message that is no task does not tell its reader the attempt.
    const isCounted = act === "crash" && !isEnding(step);
    if (isCounted)
      throw (nodes[index] ?? node).error("expected crash: true; attempts are counted for tasks only");
    if (MESSAGE_ACTS.includes(act)) continue;
    throw (nodes[index] ?? node).error(
      `"${act}" is for tasks; messages of these kinds take delay_ms, reply, fail, crash and silence`,
    );
  }
  return steps;
}

function parseSteps(node: YamlNode): readonly Step[] {
  const nodes = node.items(CASSETTE_LIMITS.stepsMax);
  const steps = nodes.map(parseStep);
  const end = steps.findIndex(isEnding);
  const behind = end === -1 ? undefined : nodes[end + 1];
  if (behind !== undefined) throw behind.error("comes behind the step that ends the exchange");
  const put = new Set<string>();
  for (const [index, step] of steps.entries()) {
    if (step.act !== "artifact") continue;
    const { id, append } = step.artifact;
    if (append && !put.has(id))
      throw (nodes[index] ?? node).error(`no step before it has the artifact "${id}"`);
    put.add(id);
  }
  return steps;
}

function parseStep(node: YamlNode, index: number): Step {
  const members = Object.entries(node.members(STEP_NAMES)) as [StepName, YamlNode][];
  const [member, another] = members;
  if (member === undefined || another !== undefined) return node.refuse(`one of ${STEP_NAMES.join(", ")}`);
  const [name, value] = member;
  switch (name) {
    case "status":
      return { act: "status", ...(value.value === null ? { text: undefined } : parseWords(value)) };
    case "delay_ms":
      return { act: "delay", durationMs: parseDelay(value) };
    case "artifact":
      return { act: "artifact", artifact: parseArtifact(value, index) };
    case "ask":
    case "auth":
      return { act: name, ...parseWords(filled(value)) };
    case "message":
    case "reply":
      return { act: name, reply: parseReply(name === "message" ? filled(value) : value) };
    case "fail":
    case "reject": {
      const { text: reason, ...more } = parseWords(filled(value));
      return { act: name, reason, ...more };
    }
    case "crash":
      return { act: "crash", attempts: parseCrash(value) };
    case "silence":
      break;
  }
  if (value.value !== true && value.value !== null) value.refuse("true");
  return { act: "silence" };
}

function parseCrash(node: YamlNode): number {
  if (node.value === true) return Number.POSITIVE_INFINITY;
  if (typeof node.value === "number") return node.integer({ min: 1, max: LIMITS.leaseAttemptsMax });
  return node.refuse(`true, or at how many attempts, up to ${LIMITS.leaseAttemptsMax}`);
}

/** Refuses an empty text. */
function filled(node: YamlNode): YamlNode {
  if (typeof node.value !== "object" || node.value === null) node.filledText();
  return node;
}

/** A text, or a map of text, data or parts. Without a text, the text of the parts is used. */
function parseWords(node: YamlNode): { readonly text: string; readonly parts?: readonly Part[] } {
  if (typeof node.value !== "object" || node.value === null) return { text: node.text() };
  const { text, ...content } = node.members(["text", "data", "parts"]);
  const parts = parseMoreParts(node, content);
  if (parts === undefined) return { text: (text ?? node.refuse(WORDS)).filledText() };
  return { text: text?.text() ?? textOfParts(parts), parts };
}

function parseMoreParts(node: YamlNode, { data, parts }: Omit<Content, "text">): readonly Part[] | undefined {
  if (data !== undefined && parts !== undefined) throw node.error("expected data or parts, got both");
  return data === undefined ? parts && parseParts(parts) : [{ kind: "data", data: data.value }];
}

function parseReply(node: YamlNode): ScriptedReply {
  if (typeof node.value === "string") return { text: node.value, parts: undefined, isPartial: false };
  if (typeof node.value !== "object") node.text();
  const { text, partial, ...content } = node.members(["text", "data", "parts", "partial"]);
  const isPartial = partial?.boolean() ?? false;
  const parts = parseMoreParts(node, content);
  if (text === undefined && parts === undefined) node.refuse(WORDS);
  return { text: text?.text(), parts, isPartial };
}

function parseArtifact(node: YamlNode, index: number): ScriptedArtifact {
  const { id, name, description, append, chunks, last_chunk, ...content } = node.members([
    "id",
    "name",
    "description",
    "text",
    "data",
    "parts",
    "chunks",
    "append",
    "last_chunk",
  ]);
  const whole = Object.keys(content).length;
  if (whole + (chunks === undefined ? 0 : 1) !== 1) {
    throw node.error("expected exactly one of text, data, parts and chunks");
  }
  const isAdded = append?.boolean() ?? false;
  if (isAdded && id === undefined) throw node.error("expected the id of the artifact that it is added to");
  return {
    id: id?.filledText() ?? `artifact-${index + 1}`,
    name: name?.filledText(),
    description: description?.text(),
    append: isAdded,
    chunks: chunks === undefined ? [parseContent(node, content)] : parseChunks(chunks),
    lastChunk: last_chunk?.boolean() ?? !isAdded,
  };
}

function parseChunks(node: YamlNode): readonly ScriptedChunk[] {
  const chunks = node.items(CASSETTE_LIMITS.chunksMax).map(parseChunk);
  const last = chunks.at(-1);
  if (last === undefined) return node.refuse("at least one chunk");
  if ("durationMs" in last) throw node.error("expected a chunk behind the last delay_ms");
  return chunks;
}

function parseChunk(node: YamlNode): ScriptedChunk {
  if (typeof node.value === "string") return [textPart(node.value)];
  const { delay_ms: delay, ...content } = node.members(["text", "data", "parts", "delay_ms"]);
  if (Object.keys(content).length + (delay === undefined ? 0 : 1) !== 1) {
    throw node.error("expected exactly one of text, data, parts and delay_ms");
  }
  return delay === undefined ? parseContent(node, content) : { durationMs: parseDelay(delay) };
}

function parseDelay(node: YamlNode): number {
  return node.integer({ min: 0, max: CASSETTE_LIMITS.delayMsMax });
}

function parseContent(node: YamlNode, { text, data, parts }: Content): readonly Part[] {
  if (text !== undefined) return [textPart(text.text())];
  if (data !== undefined) return [{ kind: "data", data: data.value }];
  return parts === undefined ? node.refuse(WORDS) : parseParts(parts);
}

function parseParts(node: YamlNode): readonly Part[] {
  const parts = node.items(LIMITS.partsMax).map((part): Part => {
    const { value } = part;
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    return isMap ? (value as Part) : part.refuse("a part, such as { kind: text, text: hello }");
  });
  return parts.length === 0 ? node.refuse("at least one part") : parts;
}

function textPart(text: string): Part {
  return { kind: "text", text };
}
