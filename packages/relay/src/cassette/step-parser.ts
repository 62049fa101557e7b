import { LIMITS, type Part } from "@a2a-relay/protocol";
import {
  CASSETTE_LIMITS,
  isEnding,
  isQuestion,
  type ScriptedArtifact,
  type ScriptedReply,
  type Step,
} from "./cassette.ts";
import type { YamlPlace } from "./yaml-place.ts";

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

/** What can be done about mail that is no task. */
const MESSAGE_ACTS: readonly Step["act"][] = ["delay", "reply", "fail", "crash", "silence"];

/** The steps of an answer to work: they must say how it ends. */
export function parseWorkSteps(place: YamlPlace): readonly Step[] {
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
export function parseMessageSteps(place: YamlPlace): readonly Step[] {
  const places = place.items(CASSETTE_LIMITS.stepsMax);
  const steps = parseSteps(place);
  for (const [index, step] of steps.entries()) {
    const { act } = step;
    // Mail that is no task does not tell its reader how often it was taken.
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

function parseSteps(place: YamlPlace): readonly Step[] {
  const places = place.items(CASSETTE_LIMITS.stepsMax);
  const steps = places.map(parseStep);
  const end = steps.findIndex(isEnding);
  const behind = end === -1 ? undefined : places[end + 1];
  if (behind !== undefined) throw behind.error("comes behind the step that ends the exchange");
  return steps;
}

function parseStep(place: YamlPlace, index: number): Step {
  const members = Object.entries(place.members(STEP_NAMES)) as [StepName, YamlPlace][];
  const [member, another] = members;
  if (member === undefined || another !== undefined) return place.refuse(`one of ${STEP_NAMES.join(", ")}`);
  const [name, value] = member;
  switch (name) {
    case "status":
      return { act: "status", text: value.value === null ? undefined : value.text() };
    case "delay_ms":
      return { act: "delay", durationMs: value.integer({ min: 0, max: CASSETTE_LIMITS.delayMsMax }) };
    case "artifact":
      return { act: "artifact", artifact: parseArtifact(value, index) };
    case "ask":
    case "auth":
    case "message":
      return { act: name, text: value.filledText() };
    case "reply":
      return { act: "reply", reply: parseReply(value) };
    case "fail":
    case "reject":
      return { act: name, reason: value.filledText() };
    case "crash":
      return { act: "crash", attempts: parseCrash(value) };
    case "silence":
      break;
  }
  if (value.value !== true && value.value !== null) value.refuse("true");
  return { act: "silence" };
}

function parseCrash(place: YamlPlace): number {
  if (place.value === true) return Number.POSITIVE_INFINITY;
  if (typeof place.value === "number") return place.integer({ min: 1, max: LIMITS.leaseAttemptsMax });
  return place.refuse(`true, or at how many attempts, up to ${LIMITS.leaseAttemptsMax}`);
}

function parseReply(place: YamlPlace): ScriptedReply {
  if (typeof place.value === "string") return { text: place.value, parts: undefined, isPartial: false };
  if (typeof place.value !== "object") place.text();
  const { text, data, parts, partial } = place.members(["text", "data", "parts", "partial"]);
  if (partial !== undefined && typeof partial.value !== "boolean") partial.refuse("true or false");
  if (data !== undefined && parts !== undefined) throw place.error("expected data or parts, got both");
  if (text === undefined && data === undefined && parts === undefined) {
    place.refuse("a text, or a map with text, data or parts");
  }
  return {
    text: text?.text(),
    parts: data === undefined ? parts && parseParts(parts) : [{ kind: "data", data: data.value }],
    isPartial: partial?.value === true,
  };
}

function parseArtifact(place: YamlPlace, index: number): ScriptedArtifact {
  const members = place.members(["id", "name", "description", "text", "data", "parts", "chunks"]);
  const { id, name, description, chunks } = members;
  const whole = [members.text, members.data, members.parts].filter((each) => each !== undefined);
  if (whole.length + (chunks === undefined ? 0 : 1) !== 1) {
    throw place.error("expected exactly one of text, data, parts and chunks");
  }
  return {
    id: id?.filledText() ?? `artifact-${index + 1}`,
    name: name?.filledText(),
    description: description?.text(),
    chunks: chunks === undefined ? [parseContent(place)] : parseChunks(chunks),
  };
}

function parseChunks(place: YamlPlace): readonly (readonly Part[])[] {
  const chunks = place
    .items(LIMITS.partsMax)
    .map((chunk) => (typeof chunk.value === "string" ? [textPart(chunk.value)] : parseContent(chunk)));
  return chunks.length === 0 ? place.refuse("at least one chunk") : chunks;
}

/** What `text`, `data` or `parts` of a map stand for. */
function parseContent(place: YamlPlace): readonly Part[] {
  const known = ["id", "name", "description", "text", "data", "parts"] as const;
  const { text, data, parts } = place.members(known);
  if (text !== undefined) return [textPart(text.text())];
  if (data !== undefined) return [{ kind: "data", data: data.value }];
  return parts === undefined ? place.refuse("a text, or a map with text, data or parts") : parseParts(parts);
}

function parseParts(place: YamlPlace): readonly Part[] {
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
