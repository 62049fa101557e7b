import { readFile, stat } from "node:fs/promises";
import { MESSAGE_KINDS, type MessageKind, parseAgentId, quote, RelayError } from "@a2a-relay/protocol";
import {
  type Cassette,
  CASSETTE_LIMITS,
  CASSETTE_MODES,
  type Exchange,
  isWorkMatch,
  type MessageMatch,
  type Step,
  WORK_KINDS,
} from "./cassette.ts";
import { parseMessageSteps, parseWorkSteps } from "./step-parser.ts";
import { YamlPosition } from "./yaml-position.ts";

/** Reads a cassette. What is wrong with it is told with file, line and what was expected there. */
export async function loadCassette(path: string): Promise<Cassette> {
  return parseCassette(await readCassetteText(path), path);
}

export async function readCassetteText(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    const limit = CASSETTE_LIMITS.fileBytesMax;
    if (size > limit)
      throw new RelayError("too_large", `${path}: has ${size} bytes, at most ${limit} are read`);
    return await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof RelayError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RelayError("invalid_argument", `${path}: the cassette cannot be read: ${why}`, { cause });
  }
}

/** `file` is only what errors and reports call it. */
export async function parseCassette(text: string, file: string): Promise<Cassette> {
  const place = await readYaml(text, file);
  const members = place.members(["version", "agent", "mode", "exchanges", "otherwise"]);
  const { version, agent, mode, exchanges, otherwise } = members;
  if (version?.value !== 1) (version ?? place).refuse("version: 1");
  const listed = exchanges?.items(CASSETTE_LIMITS.exchangesMax) ?? place.refuse("a list of exchanges");
  return {
    file,
    agent: agent === undefined ? undefined : parseAgent(agent),
    mode: mode?.oneOf(CASSETTE_MODES) ?? "loop",
    exchanges: listed.map(parseExchange),
    otherwise: otherwise === undefined ? NO_ANSWER : parseOtherwise(otherwise),
  };
}

const NO_ANSWER: readonly Step[] = [{ act: "fail", reason: "the cassette has no answer to this" }];

async function readYaml(text: string, file: string): Promise<YamlPosition> {
  const { LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [problem] = document.errors;
  if (problem !== undefined) {
    const line = problem.linePos?.[0].line ?? 1;
    const [what = ""] = problem.message.split(/ at line \d+|\n/);
    throw new RelayError("invalid_argument", `${file}:${line}: this is not YAML: ${what}`);
  }
  return new YamlPosition(valueOf(document, file), { file, document, lines });
}

/** Aliases that stand for too much are an attack on readers, not a script. */
function valueOf(document: { toJS(): unknown }, file: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RelayError("invalid_argument", `${file}: this is not usable YAML: ${why}`, { cause });
  }
}

function parseAgent(place: YamlPosition): string {
  try {
    return parseAgentId(place.value, "agent");
  } catch (cause) {
    return cause instanceof RelayError ? place.refuse("an agent id such as zhiwei@studio") : rethrow(cause);
  }
}

function rethrow(cause: unknown): never {
  throw cause;
}

function parseExchange(place: YamlPosition): Exchange {
  const { name, match, reply } = place.members(["name", "match", "reply"]);
  if (reply === undefined) throw place.error("expected the steps of the answer under reply");
  const parsed = match === undefined || match.value === null ? ANY_WORK : parseMatch(match);
  return {
    name: name?.filledText(),
    line: place.line,
    match: parsed,
    steps: isWorkMatch(parsed) ? parseWorkSteps(reply) : parseMessageSteps(reply),
  };
}

const ANY_WORK: MessageMatch = {
  kinds: WORK_KINDS,
  text: undefined,
  contains: undefined,
  regex: undefined,
  from: undefined,
  subject: undefined,
};

function parseMatch(place: YamlPosition): MessageMatch {
  const members = place.members(["text", "contains", "regex", "kind", "from", "subject"]);
  return {
    kinds: members.kind === undefined ? WORK_KINDS : parseKinds(members.kind),
    text: members.text?.text(),
    contains: members.contains?.filledText(),
    regex: members.regex === undefined ? undefined : parseRegex(members.regex),
    from: members.from?.filledText(),
    subject: members.subject?.text(),
  };
}

function parseKinds(place: YamlPosition): readonly MessageKind[] {
  const kinds = Array.isArray(place.value)
    ? place.items(MESSAGE_KINDS.length).map((kind) => kind.oneOf(MESSAGE_KINDS))
    : [place.oneOf(MESSAGE_KINDS)];
  const work = kinds.filter((kind) => WORK_KINDS.includes(kind));
  if (kinds.length === 0) place.refuse(`one or more of ${MESSAGE_KINDS.join(", ")}`);
  if (work.length === 0 || work.length === kinds.length) return kinds;
  throw place.error(
    "request and handoff are tasks, the other kinds are not: give each an exchange of its own",
  );
}

function parseRegex(place: YamlPosition): RegExp {
  const source = place.filledText();
  if (source.length > CASSETTE_LIMITS.regexCharsMax) {
    throw place.error(`has ${source.length} characters, at most ${CASSETTE_LIMITS.regexCharsMax} are read`);
  }
  try {
    return new RegExp(source, "u");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^.*\/u?: /s, "") : String(cause);
    throw place.error(`expected a regular expression, got ${quote(source)}: ${why}`);
  }
}

function parseOtherwise(place: YamlPosition): readonly Step[] {
  if (place.value === "fail") return NO_ANSWER;
  if (place.value === "ignore") return [{ act: "silence" }];
  if (!Array.isArray(place.value)) place.refuse("fail, ignore, or a list of steps");
  return parseWorkSteps(place);
}
