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
import { parserOf } from "../mechanisms/schema-check.ts";
import type { EventDraft, EventType } from "../ports/journal.ts";
import type { FailedOutcome } from "../ports/outbound.ts";
import type { TaskPushConfig, TaskPushKey } from "../ports/task-pushes.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { nextAttemptAtMs } from "./outbound-schedule.ts";
import { joinedKey } from "../mechanisms/joined-key.ts";

const idSchema = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
/** gRPC sends an absent id as an empty one. */
const optionalIdSchema = Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax }));
const secretSchema = Type.Optional(Type.String({ maxLength: LIMITS.pushCredentialCharsMax }));
const open = { additionalProperties: true };

const configMembers = {
  id: optionalIdSchema,
  url: Type.String({ minLength: 1, maxLength: LIMITS.urlCharsMax }),
  token: secretSchema,
  authentication: Type.Optional(Type.Object({ scheme: secretSchema, credentials: secretSchema }, open)),
};

export const parseConfig = parserOf(Type.Object(configMembers, open), "taskPushNotificationConfig");
export const parseCreate = parserOf(Type.Object({ taskId: idSchema, ...configMembers }, open), "params");
export const parseNamed = parserOf(Type.Object({ taskId: idSchema, id: optionalIdSchema }, open), "params");
export const parseList = parserOf(
  Type.Object(
    {
      taskId: idSchema,
      pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.listLimitMax })),
      pageToken: Type.Optional(Type.String({ maxLength: 2 * LIMITS.idCharsMax })),
    },
    open,
  ),
  "params",
);

/** Printable ASCII: secrets become headers, so what could end a header is refused when it is given. */
const HEADER_TEXT = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** A token of HTTP. */
const SCHEME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Updates in a row without a successful attempt, after which the relay gives up the configuration. */
export const GIVEN_UP_MAX = 3;

/** Null where nothing was given. No error repeats the value: it is a secret. */
export function readSecret(text: string | undefined, field: string): string | null {
  if (text === undefined || text === "") return null;
  if (HEADER_TEXT.test(text)) return text;
  throw new RelayError(
    "invalid_argument",
    `${field}: is sent as an HTTP header, so it is printable ASCII without blanks at its ends`,
  );
}

/** A scheme without credentials is kept, but no header is sent for it. */
export function readAuthentication({
  scheme = "",
  credentials,
}: { readonly scheme?: string; readonly credentials?: string } = {}): {
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

/** `lastId` is the last id of the previous page. */
export function writePageToken(lastId: string): string {
  return Buffer.from(lastId).toString("base64url");
}

export function readPageToken(token = ""): string {
  const lastId = Buffer.from(token, "base64url").toString();
  if (writePageToken(lastId) === token) return lastId;
  throw new RelayError("invalid_argument", "pageToken: is not one that this relay gave; begin without it");
}

/** What its owner asks for. */
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
 * The configuration that its owner asks for. One that replaces another continues at its cursor. It is due at once: the
 * task may get updates before the configuration is committed.
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
    sentAtMs: null,
    createdAtMs: before?.createdAtMs ?? at.nowMs,
    version: before?.version ?? 0,
  };
}

/** All updates up to `n` have arrived. */
export function configAfterArrival(
  config: TaskPushConfig,
  task: TaskRecord,
  { n, nowMs }: { readonly n: number; readonly nowMs: number },
): TaskPushConfig {
  return { ...configAtUpdate(config, task, n, nowMs), givenUp: 0, reason: null };
}

/** Schedules the next attempt of update `n`, or gives it up and continues with the next. `gone` ends all of them. */
export function configAfterFailure(
  config: TaskPushConfig,
  task: TaskRecord,
  outcome: FailedOutcome,
  at: { readonly n: number; readonly nowMs: number; readonly offsetsMs: readonly number[] },
): TaskPushConfig {
  const { reason } = outcome;
  const attempts = config.attempts + 1;
  const ended = { ...config, reason, attempts, sentAtMs: null };
  if (outcome.kind === "gone") return { ...ended, state: "ended", nextAtMs: null };
  const retryAfterMs = "retryAfterMs" in outcome ? outcome.retryAfterMs : 0;
  const failed = { attempt: attempts, endedAtMs: at.nowMs, retryAfterMs };
  const nextAtMs = nextAttemptAtMs(failed, at.offsetsMs);
  if (nextAtMs !== undefined) return { ...ended, nextAtMs };
  const givenUp = config.givenUp + 1;
  const moved = { ...configAtUpdate(config, task, at.n, at.nowMs + retryAfterMs), givenUp, reason };
  const isOver = givenUp >= GIVEN_UP_MAX || moved.state === "ended";
  return isOver ? { ...moved, state: "failed", nextAtMs: null } : moved;
}

/** Moves the cursor behind update `n`. The next update, if there is one, is due at `nextAtMs`. */
export function configAtUpdate(
  config: TaskPushConfig,
  task: TaskRecord,
  n: number,
  nextAtMs: number,
): TaskPushConfig {
  return {
    ...config,
    afterN: n,
    attempts: 0,
    sentAtMs: null,
    nextAtMs: n < task.updateCount ? nextAtMs : null,
    state: hasNothingBehind(task, n) ? "ended" : "active",
  };
}

/** The task is over and has no update behind `afterN`. */
function hasNothingBehind({ state, updateCount }: TaskRecord, afterN: number): boolean {
  return isTerminal(state) && afterN >= updateCount;
}

/** Whether the answer to a request for `sent` is about this configuration. */
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

/** The owner of what the caller makes. All operators of a tenant share `GUEST`. */
export function ownerOf(principal: Principal): AgentId {
  return principal.kind === "agent" ? principal.agentId : GUEST;
}

export function configKey({ tenant, taskId, id }: TaskPushKey): string {
  return joinedKey(tenant, taskId, id);
}

/** It names the host and never the URL, which may contain a secret. */
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
