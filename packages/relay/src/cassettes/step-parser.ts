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
import type { YamlPosition } from "./yaml-position.ts";

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

/** What is said beside a text. */
type Content = Readonly<Partial<Record<"text" | "data" | "parts", YamlPosition>>>;

const WORDS = "a text, or a map with text, data or parts";

/** What can be done about mail that is no task. */
const MESSAGE_ACTS: readonly Step["act"][] = ["delay", "reply", "fail", "crash", "silence"];

/** The steps of an answer to work: they must say how it ends. */
export function parseWorkSteps(place: YamlPosition): readonly Step[] {
  const steps = parseSteps(place);
  const last = steps.at(-1);
  if (last === undefined || !(isEnding(last) || isQuestion(last))) {
    throw place.error(
      "expected a last step that ends it: reply, message, fail, reject, silence or crash: true",
    );
  }
  if (isQuestion(last)) {
    throw place.error(`expected a step behind the last "${last.act}", for when the requester has answered`);
  }
  return steps;
}

/** The steps of an answer to other mail. None at all acknowledges it without a word. */
export function parseMessageSteps(place: YamlPosition): readonly Step[] {
  const places = place.items(CASSETTE_LIMITS.stepsMax);
  const steps = parseSteps(place);
  for (const [index, step] of steps.entries()) {
    const { act } = step;
    // MailboxMessage that is no task does not tell its reader how often it was taken.
    const isCounted = act === "crash" && !isEnding(step);
    if (isCounted)
      throw (places[index] ?? place).error("expected crash: true; attempts are counted for tasks only");
    if (MESSAGE_ACTS.includes(act)) continue;
    throw (places[index] ?? place).error(
      `"${act}" is for tasks; mail of these kinds knows delay_ms, reply, fail, crash and silence`,
    );
  }
  return steps;
}

function parseSteps(place: YamlPosition): readonly Step[] {
  const places = place.items(CASSETTE_LIMITS.stepsMax);
  const steps = places.map(parseStep);
  const end = steps.findIndex(isEnding);
  const behind = end === -1 ? undefined : places[end + 1];
  if (behind !== undefined) throw behind.error("comes behind the step that ends the exchange");
  const put = new Set<string>();
  for (const [index, step] of steps.entries()) {
    if (step.act !== "artifact") continue;
    const { id, append } = step.artifact;
    if (append && !put.has(id))
      throw (places[index] ?? place).error(`no step before it has the artifact "${id}"`);
    put.add(id);
  }
  return steps;
}

function parseStep(place: YamlPosition, index: number): Step {
  const members = Object.entries(place.members(STEP_NAMES)) as [StepName, YamlPosition][];
  const [member, another] = members;
  if (member === undefined || another !== undefined) return place.refuse(`one of ${STEP_NAMES.join(", ")}`);
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

function parseCrash(place: YamlPosition): number {
  if (place.value === true) return Number.POSITIVE_INFINITY;
  if (typeof place.value === "number") return place.integer({ min: 1, max: LIMITS.leaseAttemptsMax });
  return place.refuse(`true, or at how many attempts, up to ${LIMITS.leaseAttemptsMax}`);
}

/** Refuses a text that says nothing. */
function filled(place: YamlPosition): YamlPosition {
  if (typeof place.value !== "object" || place.value === null) place.filledText();
  return place;
}

/** A text, or a map of text, data or parts; whoever reads text only reads that of the parts where there is no other. */
function parseWords(place: YamlPosition): { readonly text: string; readonly parts?: readonly Part[] } {
  if (typeof place.value !== "object" || place.value === null) return { text: place.text() };
  const { text, ...content } = place.members(["text", "data", "parts"]);
  const parts = parseMoreParts(place, content);
  if (parts === undefined) return { text: (text ?? place.refuse(WORDS)).filledText() };
  return { text: text?.text() ?? textOfParts(parts), parts };
}

function parseMoreParts(
  place: YamlPosition,
  { data, parts }: Omit<Content, "text">,
): readonly Part[] | undefined {
  if (data !== undefined && parts !== undefined) throw place.error("expected data or parts, got both");
  return data === undefined ? parts && parseParts(parts) : [{ kind: "data", data: data.value }];
}

function parseReply(place: YamlPosition): ScriptedReply {
  if (typeof place.value === "string") return { text: place.value, parts: undefined, isPartial: false };
  if (typeof place.value !== "object") place.text();
  const { text, partial, ...content } = place.members(["text", "data", "parts", "partial"]);
  const isPartial = partial?.boolean() ?? false;
  const parts = parseMoreParts(place, content);
  if (text === undefined && parts === undefined) place.refuse(WORDS);
  return { text: text?.text(), parts, isPartial };
}

function parseArtifact(place: YamlPosition, index: number): ScriptedArtifact {
  const { id, name, description, append, chunks, last_chunk, ...content } = place.members([
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
    throw place.error("expected exactly one of text, data, parts and chunks");
  }
  const isAdded = append?.boolean() ?? false;
  if (isAdded && id === undefined) throw place.error("expected the id of the artifact that it is added to");
  return {
    id: id?.filledText() ?? `artifact-${index + 1}`,
    name: name?.filledText(),
    description: description?.text(),
    append: isAdded,
    chunks: chunks === undefined ? [parseContent(place, content)] : parseChunks(chunks),
    lastChunk: last_chunk?.boolean() ?? !isAdded,
  };
}

function parseChunks(place: YamlPosition): readonly ScriptedChunk[] {
  const chunks = place.items(CASSETTE_LIMITS.chunksMax).map(parseChunk);
  const last = chunks.at(-1);
  if (last === undefined) return place.refuse("at least one chunk");
  if ("durationMs" in last) throw place.error("expected a chunk behind the last delay_ms");
  return chunks;
}

function parseChunk(place: YamlPosition): ScriptedChunk {
  if (typeof place.value === "string") return [textPart(place.value)];
  const { delay_ms: delay, ...content } = place.members(["text", "data", "parts", "delay_ms"]);
  if (Object.keys(content).length + (delay === undefined ? 0 : 1) !== 1) {
    throw place.error("expected exactly one of text, data, parts and delay_ms");
  }
  return delay === undefined ? parseContent(place, content) : { durationMs: parseDelay(delay) };
}

function parseDelay(place: YamlPosition): number {
  return place.integer({ min: 0, max: CASSETTE_LIMITS.delayMsMax });
}

function parseContent(place: YamlPosition, { text, data, parts }: Content): readonly Part[] {
  if (text !== undefined) return [textPart(text.text())];
  if (data !== undefined) return [{ kind: "data", data: data.value }];
  return parts === undefined ? place.refuse(WORDS) : parseParts(parts);
}

function parseParts(place: YamlPosition): readonly Part[] {
  const parts = place.items(LIMITS.partsMax).map((part): Part => {
    const { value } = part;
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    return isMap ? (value as Part) : part.refuse("a part, such as { kind: text, text: hello }");
  });
  return parts.length === 0 ? place.refuse("at least one part") : parts;
}

function textPart(text: string): Part {
  return { kind: "text", text };
}
