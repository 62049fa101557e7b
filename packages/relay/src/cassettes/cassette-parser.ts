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
import { YamlNode } from "./yaml-node.ts";

/** Reads a cassette. Errors name file, line and what was expected. */
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

/** `file` is the name in errors and reports. */
export async function parseCassette(text: string, file: string): Promise<Cassette> {
  const node = await readYaml(text, file);
  const members = node.members(["version", "agent", "mode", "exchanges", "otherwise"]);
  const { version, agent, mode, exchanges, otherwise } = members;
  if (version?.value !== 1) (version ?? node).refuse("version: 1");
  const listed = exchanges?.items(CASSETTE_LIMITS.exchangesMax) ?? node.refuse("a list of exchanges");
  return {
    file,
    agent: agent === undefined ? undefined : parseAgent(agent),
    mode: mode?.oneOf(CASSETTE_MODES) ?? "loop",
    exchanges: listed.map(parseExchange),
    otherwise: otherwise === undefined ? NO_ANSWER : parseOtherwise(otherwise),
  };
}

const NO_ANSWER: readonly Step[] = [{ act: "fail", reason: "the cassette has no answer to this" }];

async function readYaml(text: string, file: string): Promise<YamlNode> {
  const { LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [problem] = document.errors;
  if (problem !== undefined) {
    const line = problem.linePos?.[0].line ?? 1;
    const [what = ""] = problem.message.split(/ at line \d+|\n/);
    throw new RelayError("invalid_argument", `${file}:${line}: this is not YAML: ${what}`);
  }
  return new YamlNode(valueOf(document, file), { file, document, lines });
}

/** Throws for aliases that expand to too much. */
function valueOf(document: { toJS(): unknown }, file: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RelayError("invalid_argument", `${file}: this is not usable YAML: ${why}`, { cause });
  }
}

function parseAgent(node: YamlNode): string {
  try {
    return parseAgentId(node.value, "agent");
  } catch (cause) {
    return cause instanceof RelayError ? node.refuse("an agent id such as zhiwei@studio") : rethrow(cause);
  }
}

function rethrow(cause: unknown): never {
  throw cause;
}

function parseExchange(node: YamlNode): Exchange {
  const { name, match, reply } = node.members(["name", "match", "reply"]);
  if (reply === undefined) throw node.error("expected the steps of the answer under reply");
  const parsed = match === undefined || match.value === null ? ANY_WORK : parseMatch(match);
  return {
    name: name?.filledText(),
    line: node.line,
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

function parseMatch(node: YamlNode): MessageMatch {
  const members = node.members(["text", "contains", "regex", "kind", "from", "subject"]);
  return {
    kinds: members.kind === undefined ? WORK_KINDS : parseKinds(members.kind),
    text: members.text?.text(),
    contains: members.contains?.filledText(),
    regex: members.regex === undefined ? undefined : parseRegex(members.regex),
    from: members.from?.filledText(),
    subject: members.subject?.text(),
  };
}

function parseKinds(node: YamlNode): readonly MessageKind[] {
  const kinds = Array.isArray(node.value)
    ? node.items(MESSAGE_KINDS.length).map((kind) => kind.oneOf(MESSAGE_KINDS))
    : [node.oneOf(MESSAGE_KINDS)];
  const work = kinds.filter((kind) => WORK_KINDS.includes(kind));
  if (kinds.length === 0) node.refuse(`one or more of ${MESSAGE_KINDS.join(", ")}`);
  if (work.length === 0 || work.length === kinds.length) return kinds;
  throw node.error(
    "request and handoff are tasks, the other kinds are not: give each an exchange of its own",
  );
}

function parseRegex(node: YamlNode): RegExp {
  const source = node.filledText();
  if (source.length > CASSETTE_LIMITS.regexCharsMax) {
    throw node.error(`has ${source.length} characters, at most ${CASSETTE_LIMITS.regexCharsMax} are read`);
  }
  try {
    return new RegExp(source, "u");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^.*\/u?: /s, "") : String(cause);
    throw node.error(`expected a regular expression, got ${quote(source)}: ${why}`);
  }
}

function parseOtherwise(node: YamlNode): readonly Step[] {
  if (node.value === "fail") return NO_ANSWER;
  if (node.value === "ignore") return [{ act: "silence" }];
  if (!Array.isArray(node.value)) node.refuse("fail, ignore, or a list of steps");
  return parseWorkSteps(node);
}
