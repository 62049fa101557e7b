import {
  type DuplicateSafety,
  formatInstant,
  type MessageInput,
  MessageInputSchema,
  type MessageKind,
  parseAddress,
  parseInstant,
  parseRecordId,
  quote,
  RelayError,
  textOfParts,
} from "@a2a-relay/protocol";
import { parserOf } from "../mechanisms/schema-check.ts";
import { digestOf } from "../rules/digest.ts";

/** A parsed message, before sender and recipient are resolved. */
export interface MessageDraft {
  readonly kind: MessageKind;
  readonly from: string | undefined;
  readonly to: string;
  readonly subject: string;
  readonly body: string;
  readonly id: string | undefined;
  readonly threadId: string | undefined;
  readonly replyTo: string | undefined;
  readonly taskId: string | undefined;
  readonly parentId: string | undefined;
  readonly deadlineMs: number | undefined;
  readonly expiresAtMs: number | undefined;
  readonly duplicateSafety: DuplicateSafety;
  readonly idempotencyKey: string | undefined;
  readonly leaseId: string | undefined;
  /** The sender's own members without `null`s: what is kept and what is compared. */
  readonly given: Omit<MessageInput, "lease_id">;
}

const parseInput = parserOf(MessageInputSchema, "message");

/** Reads the a2a.v1 JSON in any of its complete or partial forms. */
export function parseMessageDraft(input: unknown): MessageDraft {
  const { lease_id: leaseId, ...written } = withoutNulls(parseInput(input));
  const given = inUtc(written);
  assertNoAttachments(given.attachments);
  parseAddress(given.to);
  const idempotency = readIdempotency(given);
  const body = given.body ?? textOfParts(given.parts ?? []);
  if (body === "" && given.parts === undefined && given.type !== "heartbeat") {
    throw new RelayError("invalid_argument", "message: body or parts is missing; a message says something");
  }
  assertSaysState(given);
  if (given.signature !== undefined) assertSignedWhole(given);
  return {
    kind: given.type ?? "note",
    from: given.from,
    to: given.to,
    subject: given.subject ?? subjectOf(body),
    body,
    id: optionalId(given.id, "id"),
    threadId: optionalId(given.thread_id, "thread_id"),
    replyTo: optionalId(given.reply_to, "reply_to"),
    taskId: optionalId(given.task_id, "task_id"),
    parentId: optionalId(given.parent, "parent"),
    deadlineMs: given.deadline_ms ?? undefined,
    expiresAtMs:
      written.expires_at === undefined ? undefined : parseInstant(written.expires_at, "expires_at"),
    leaseId: leaseId ?? undefined,
    given,
    ...idempotency,
  };
}

/** Members that a retry of the same message may carry differently. */
const NOT_COMPARED = new Set([
  "id",
  "created_at",
  "status",
  "signature",
  "key_id",
  "nonce",
  "signed_at",
  "traceparent",
  "tracestate",
  "from",
  "to",
]);

/** What makes two sends the same message; `from` and `to` are compared as resolved, by the key's scope. */
export function contentDigest(draft: MessageDraft): string {
  const compared = Object.entries(draft.given).filter(([member]) => !NOT_COMPARED.has(member));
  return digestOf(Object.fromEntries(compared.map(withoutA2aId)));
}

/** An A2A caller may give every retry a new id. */
function withoutA2aId([member, value]: readonly [string, unknown]): readonly [string, unknown] {
  if (member !== "a2a_message") return [member, value];
  const { messageId: _, ...compared } = value as Readonly<Record<string, unknown>>;
  return [member, compared];
}

/** What makes two answers to a task the same. The key does not count: a restarted worker uses a new one. */
export function answerDigestOf(draft: MessageDraft): string {
  const { idempotency: _long, idempotency_key: _short, ...given } = draft.given;
  return contentDigest({ ...draft, given });
}

/** The name that the sender of a task gave it, and what makes two tasks of that name the same. */
export interface TaskNaming {
  readonly clientTaskId: string;
  readonly digest: string;
}

const TASK_KEY = "task:";

/**
 * The key under which a retry is recognised: the name of the task, the sender's key, or the id it chose itself.
 * The idempotency key of a named task says that its *work* may be shared, which is another thing.
 */
export function sendKeyOf(draft: MessageDraft, naming?: TaskNaming): string | undefined {
  if (naming !== undefined) return `${TASK_KEY}${naming.clientTaskId}`;
  if (draft.idempotencyKey !== undefined) return `key:${draft.idempotencyKey}`;
  return draft.id === undefined ? undefined : `id:${draft.id}`;
}

export function isTaskKey(sendKey: string): boolean {
  return sendKey.startsWith(TASK_KEY);
}

/** The stable name of an operation, which stands for it whatever the words of the request. */
export function taskKindOf(message: Readonly<Record<string, unknown>>): string | undefined {
  const kind = message["task_kind"];
  return typeof kind === "string" && kind.trim() !== "" ? kind : undefined;
}

/** The key as its sender wrote it. */
export function keyName(sendKey: string): string {
  return sendKey.slice(sendKey.indexOf(":") + 1);
}

type Given = { [Member in keyof MessageInput]?: Exclude<MessageInput[Member], null> } & MessageInput;

function withoutNulls(input: MessageInput): Given {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)) as Given;
}

const INSTANTS = ["created_at", "expires_at"] as const;

/** The relay stores UTC. The text of a signed message stays as it was signed. */
function inUtc(written: Omit<Given, "lease_id">): Omit<Given, "lease_id"> {
  const moved: { -readonly [Member in (typeof INSTANTS)[number]]?: string } = {};
  for (const member of INSTANTS) {
    const text = written[member];
    if (text === undefined) continue;
    const atMs = parseInstant(text, member);
    if (written.signature === undefined && !text.endsWith("Z")) moved[member] = formatInstant(atMs);
  }
  return Object.keys(moved).length === 0 ? written : { ...written, ...moved };
}

function readIdempotency(given: Given): {
  readonly duplicateSafety: DuplicateSafety;
  readonly idempotencyKey: string | undefined;
} {
  const long = given.idempotency ?? undefined;
  const short = given.idempotency_key ?? undefined;
  if (long !== undefined && short !== undefined && long.key !== short) {
    throw new RelayError(
      "invalid_argument",
      `idempotency.key ${quote(long.key)} and idempotency_key ${quote(short)} differ; send one of them`,
    );
  }
  return { duplicateSafety: long?.duplicate_safety ?? "unsafe", idempotencyKey: long?.key ?? short };
}

function assertNoAttachments(attachments: unknown): void {
  const empty =
    attachments === undefined ||
    attachments === "" ||
    attachments === false ||
    (Array.isArray(attachments) && attachments.length === 0);
  if (empty) return;
  throw new RelayError(
    "invalid_argument",
    "attachments: are not carried; put a reference (URL, path, hash) into parts or body",
  );
}

/** In other kinds it would suggest a change of the task that does not happen. */
function assertSaysState({ type = "note", task_state: state }: Given): void {
  if (state === undefined || type === "status" || type === "reply") return;
  throw new RelayError(
    "invalid_argument",
    `task_state: a ${type} does not say how a task stands; send a status, or leave it out`,
  );
}

/** The relay must not fill in members that the signature does not cover. */
function assertSignedWhole(given: Given): void {
  const missing = (["id", "created_at", "thread_id"] as const).filter(
    (member) => given[member] === undefined,
  );
  if (missing.length === 0) return;
  throw new RelayError("invalid_argument", `signature: a signed message must bring ${missing.join(", ")}`);
}

function optionalId(value: string | null | undefined, field: string): string | undefined {
  return value === undefined || value === null ? undefined : parseRecordId(value, field);
}

const SUBJECT_DERIVED_CHARS = 80;

/** The first line, short enough for a list. Reads only the beginning: a body may be a megabyte. */
function subjectOf(body: string): string {
  const start = body.trimStart().slice(0, 2 * SUBJECT_DERIVED_CHARS + 1);
  const end = start.indexOf("\n");
  const line = (end === -1 ? start : start.slice(0, end)).trim();
  if (line === "") return "(no subject)";
  if (line.length <= SUBJECT_DERIVED_CHARS) return line;
  if (firstChars(line, SUBJECT_DERIVED_CHARS) === line) return line;
  return firstChars(line, SUBJECT_DERIVED_CHARS - ELLIPSIS.length) + ELLIPSIS;
}

const ELLIPSIS = "...";

/** Counts code points, so that no surrogate pair is cut. */
function firstChars(text: string, count: number): string {
  if (text.length <= count) return text;
  return Array.from(text.slice(0, 2 * count))
    .slice(0, count)
    .join("");
}
