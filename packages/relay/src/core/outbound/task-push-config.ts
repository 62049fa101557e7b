import {
  type A2aVersion,
  type AgentId,
  GUEST,
  isTerminal,
  LIMITS,
  quote,
  RelayError,
} from "@a2a-relay/protocol";
import { Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import type { EventDraft, EventType } from "../ports/journal.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskPushConfig, TaskPushKey } from "../ports/task-pushes.ts";
import { nextAttemptAtMs, readRetryAfter } from "./outbound-schedule.ts";
import type { PushOutcome } from "./push-outcome.ts";
import { parserOf } from "../mechanisms/schema-check.ts";

/** What its owner says of a configuration. */
export interface TaskPushWish {
  readonly id: string;
  readonly owner: AgentId;
  readonly url: string;
  readonly token: string | null;
  readonly scheme: string | null;
  readonly credentials: string | null;
  readonly dialect: A2aVersion;
}

/**
 * The configuration after its owner has said so. One that takes the place of another goes on where that one was. It is
 * due at once: something may happen to the task before it is written, and whoever looks at it sees that.
 */
export function configAfter(
  before: TaskPushConfig | undefined,
  wish: TaskPushWish,
  task: TaskRecord,
  at: { readonly nowMs: number; readonly afterN: number },
): TaskPushConfig {
  const afterN = before?.afterN ?? at.afterN;
  const isOver = hasNothingBehind(task, afterN);
  return {
    ...wish,
    tenant: task.tenant,
    taskId: task.id,
    state: isOver ? "ended" : "active",
    reason: null,
    afterN,
    attempts: 0,
    givenUp: 0,
    nextAtMs: isOver ? null : at.nowMs,
    createdAtMs: before?.createdAtMs ?? at.nowMs,
    version: before?.version ?? 0,
  };
}

/** Nothing will ever happen to the task that was not told. */
export function hasNothingBehind({ state, updateCount }: TaskRecord, afterN: number): boolean {
  return isTerminal(state) && afterN >= updateCount;
}

/** Whether this is still what a request was sent for; if not, its answer says nothing of it. */
export function isSameConfig(config: TaskPushConfig, sent: TaskPushConfig): boolean {
  return (
    config.state === "active" &&
    config.url === sent.url &&
    config.token === sent.token &&
    config.scheme === sent.scheme &&
    config.credentials === sent.credentials &&
    config.dialect === sent.dialect &&
    config.afterN === sent.afterN &&
    config.attempts === sent.attempts
  );
}

/** Under which name the caller owns what it makes. Operators, who see all of a tenant, share one. */
export function ownerOf(principal: Principal): AgentId {
  return principal.kind === "agent" ? principal.agentId : GUEST;
}

/** Who is called: whatever hangs at one of its addresses may well hang at all of them. */
export function originOf({ url }: Pick<TaskPushConfig, "url">): string {
  return URL.parse(url)?.origin ?? "";
}

export function nameOf({ tenant, taskId, id }: TaskPushKey): string {
  return JSON.stringify([tenant, taskId, id]);
}

/** A fact about where a caller is told of a task. It names the host, and never the URL, which may be a secret. */
export function taskPushEvent(
  type: Extract<EventType, "push.configured" | "push.disabled" | "push.removed">,
  { owner, taskId, id, url }: Pick<TaskPushConfig, "id" | "owner" | "taskId" | "url">,
  by: { readonly actor: string; readonly atMs: number },
  data: Readonly<Record<string, unknown>> = {},
): EventDraft {
  const agentId = owner === GUEST ? null : owner;
  const about = { agentId, messageId: null, taskId, threadId: null };
  return { type, ...by, ...about, data: { config_id: id, host: URL.parse(url)?.host ?? "", ...data } };
}

/** Updates in a row that nobody took: then nobody is there. */
export const GIVEN_UP_MAX = 3;

type FailedOutcome = Exclude<PushOutcome, { readonly kind: "delivered" }>;

/** All updates up to `n` have arrived. */
export function afterArrival(
  config: TaskPushConfig,
  task: TaskRecord,
  { n, nowMs }: { readonly n: number; readonly nowMs: number },
): TaskPushConfig {
  return { ...toldUpTo(config, task, n, nowMs), givenUp: 0, reason: null };
}

/** Update `n` is tried again later, or given up for the next; a receiver that wants no more gets no more. */
export function afterFailure(
  config: TaskPushConfig,
  task: TaskRecord,
  outcome: FailedOutcome,
  at: { readonly n: number; readonly nowMs: number; readonly offsetsMs: readonly number[] },
): TaskPushConfig {
  const { reason } = outcome;
  const attempts = config.attempts + 1;
  if (outcome.kind === "gone") return { ...config, state: "ended", reason, attempts, nextAtMs: null };
  const retryAfter = "retryAfter" in outcome ? outcome.retryAfter : undefined;
  const failed = { attempt: attempts, endedAtMs: at.nowMs, retryAfter };
  const nextAtMs = nextAttemptAtMs(failed, at.offsetsMs);
  if (nextAtMs !== undefined) return { ...config, reason, attempts, nextAtMs };
  const givenUp = config.givenUp + 1;
  const patientMs = at.nowMs + (readRetryAfter(retryAfter, at.nowMs) ?? 0);
  const moved = { ...toldUpTo(config, task, at.n, patientMs), givenUp, reason };
  const isOver = givenUp >= GIVEN_UP_MAX || moved.state === "ended";
  return isOver ? { ...moved, state: "failed", nextAtMs: null } : moved;
}

/** The cursor behind update `n`, and the next one due at the time given, where there is one. */
export function toldUpTo(
  config: TaskPushConfig,
  task: TaskRecord,
  n: number,
  nextAtMs: number,
): TaskPushConfig {
  return {
    ...config,
    afterN: n,
    attempts: 0,
    nextAtMs: n < task.updateCount ? nextAtMs : null,
    state: hasNothingBehind(task, n) ? "ended" : "active",
  };
}

const id = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
/** Absent, or empty where it comes from a wire that has no other way of saying so. */
const noId = Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax }));
const secret = Type.Optional(Type.String({ maxLength: LIMITS.pushCredentialCharsMax }));
const open = { additionalProperties: true };

const config = {
  id: noId,
  url: Type.String({ minLength: 1, maxLength: LIMITS.urlCharsMax }),
  token: secret,
  authentication: Type.Optional(Type.Object({ scheme: secret, credentials: secret }, open)),
};

export const parseConfig = parserOf(Type.Object(config, open), "taskPushNotificationConfig");
export const parseCreate = parserOf(Type.Object({ taskId: id, ...config }, open), "params");
export const parseNamed = parserOf(Type.Object({ taskId: id, id: noId }, open), "params");
export const parseList = parserOf(
  Type.Object(
    {
      taskId: id,
      pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.listLimitMax })),
      pageToken: Type.Optional(Type.String({ maxLength: 2 * LIMITS.idCharsMax })),
    },
    open,
  ),
  "params",
);

/** What becomes a header: whatever could end the header, or that no header can carry, is refused when it is given. */
const HEADER_TEXT = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** A token of HTTP. */
const SCHEME = /^[\w!#$%&'*+.^`|~-]+$/;

/** Null where nothing was given. The value itself is a secret, which no error repeats. */
export function readSecret(text: string | undefined, field: string): string | null {
  if (text === undefined || text === "") return null;
  if (HEADER_TEXT.test(text)) return text;
  throw new RelayError(
    "invalid_argument",
    `${field}: is sent as an HTTP header, so it is printable ASCII without blanks at its ends`,
  );
}

/** A scheme without credentials tells what the receiver knows, and is sent no header for. */
export function readAuthentication({ scheme = "", credentials }: Authentication = {}): {
  readonly scheme: string | null;
  readonly credentials: string | null;
} {
  const given = readSecret(credentials, "authentication.credentials");
  if (scheme === "" && given === null) return { scheme: null, credentials: null };
  if (SCHEME.test(scheme)) return { scheme, credentials: given };
  throw new RelayError(
    "invalid_argument",
    `authentication.scheme: ${quote(scheme)} is not a scheme of HTTP, such as Bearer`,
  );
}

interface Authentication {
  readonly scheme?: string;
  readonly credentials?: string;
}

/** The id of the last one of the page before. */
export function writePageToken(lastId: string): string {
  return Buffer.from(lastId).toString("base64url");
}

export function readPageToken(token = ""): string {
  const lastId = Buffer.from(token, "base64url").toString();
  if (writePageToken(lastId) === token) return lastId;
  throw new RelayError("invalid_argument", "pageToken: is not one that this relay gave; begin without it");
}
