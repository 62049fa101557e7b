import {
  type A2aOperation,
  type A2aVersion,
  type AgentId,
  LIMITS,
  parseInstant,
  parseRecordId,
  PartsSchema,
  readTaskState,
  RelayError,
  type TaskState,
} from "@a2a-relay/protocol";
import { type Static, Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import { RELAY_AGENT } from "../rules/agent-name.ts";
import { threadOfContext } from "../tasks/a2a-view.ts";

/** The caller of an A2A operation and the headers that it sent. */
export interface A2aCaller {
  readonly principal: Principal;
  /** The agent whose endpoint was called; undefined for the relay's own, where the task determines the agent. */
  readonly agentId: AgentId | undefined;
  readonly version: A2aVersion;
  /** The URIs of the extensions that the caller supports. */
  readonly extensions: readonly string[];
  readonly idempotencyKey: string | undefined;
}

type Members = Readonly<Record<string, unknown>>;

/**
 * The agent that a request is for: the one whose endpoint was called; at the relay's own endpoint the one in the A2A
 * tenant field, or in the metadata of a message. Undefined: the relay itself.
 */
export function targetOf(
  operation: A2aOperation,
  params: Members,
  calledName: string | undefined,
): string | undefined {
  const isMessage = operation === "send" || operation === "stream";
  const names = [calledName, params["tenant"], ...(isMessage ? targetsInMetadata(params) : [])];
  return names.find((name): name is string => {
    return typeof name === "string" && name !== "" && name !== RELAY_AGENT;
  });
}

function targetsInMetadata(params: Members): readonly unknown[] {
  return [params["metadata"], memberOf(params["message"], "metadata")].map((metadata) =>
    memberOf(metadata, "relay_target_agent_id"),
  );
}

/** The relay itself answers a message that names no agent and no task. */
export function isForRelay(params: Members): boolean {
  const taskId = memberOf(params["message"], "taskId");
  return taskId === undefined || taskId === null || taskId === "";
}

function memberOf(value: unknown, member: string): unknown {
  return typeof value === "object" && value !== null ? (value as Members)[member] : undefined;
}

const id = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
const text = Type.String({ maxLength: LIMITS.urlCharsMax });
const members = Type.Record(Type.String(), Type.Unknown());
const historyLength = Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }));
const open = { additionalProperties: true };

const MessageSchema = Type.Object(
  {
    messageId: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.urlCharsMax })),
    role: Type.Optional(Type.String()),
    parts: PartsSchema,
    contextId: Type.Optional(Type.String({ maxLength: LIMITS.urlCharsMax })),
    taskId: Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax })),
    metadata: Type.Optional(members),
  },
  open,
);

const SendSchema = Type.Object(
  {
    message: MessageSchema,
    configuration: Type.Optional(
      Type.Object(
        {
          historyLength,
          returnImmediately: Type.Optional(Type.Boolean()),
          acceptedOutputModes: Type.Optional(Type.Array(Type.String())),
          taskPushNotificationConfig: Type.Optional(members),
        },
        open,
      ),
    ),
    metadata: Type.Optional(members),
    /** The id that a caller of A2A 0.1 gives its task. */
    clientTaskId: Type.Optional(id),
  },
  open,
);
export type A2aSendRequest = Static<typeof SendSchema>;

const TaskSchema = Type.Object({ id, historyLength, metadata: Type.Optional(members) }, open);

const ListSchema = Type.Object(
  {
    contextId: Type.Optional(text),
    status: Type.Optional(text),
    pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })),
    pageToken: Type.Optional(text),
    historyLength,
    statusTimestampAfter: Type.Optional(text),
    includeArtifacts: Type.Optional(Type.Boolean()),
  },
  open,
);
export type A2aListRequest = Static<typeof ListSchema>;

const parseSendMembers = parserOf(SendSchema, "params");

/** Refuses an invalid contextId here, so that the error names A2A's field and not `thread_id`. */
export function parseSend(params: unknown): A2aSendRequest {
  const request = parseSendMembers(params);
  const { contextId } = request.message;
  if (contextId !== undefined) threadOfContext(contextId);
  return request;
}

export const parseTaskRequest = parserOf(TaskSchema, "params");
export const parseList = parserOf(ListSchema, "params");

const LIST_DEFAULT = 50;
const LIST_MAX = 100;

export function pageSizeOf(asked: number | undefined): number {
  if (asked === undefined || asked === 0) return LIST_DEFAULT;
  if (asked <= LIST_MAX) return asked;
  throw new RelayError("invalid_argument", `pageSize: from 1 to ${LIST_MAX}, got ${asked}`);
}

/** Libraries write these for an unset member. */
const UNSPECIFIED: ReadonlySet<string> = new Set(["TASK_STATE_UNSPECIFIED", "UNRECOGNIZED"]);

export function stateOf(status: string | undefined): TaskState | undefined {
  if (status === undefined || status === "" || UNSPECIFIED.has(status)) return undefined;
  const state = readTaskState(status);
  if (state !== undefined) return state;
  throw new RelayError("invalid_argument", `status: "${status}" is no state of a task`);
}

export function sinceOf({ statusTimestampAfter }: A2aListRequest): number {
  if (statusTimestampAfter === undefined || statusTimestampAfter === "") return 0;
  return parseInstant(statusTimestampAfter, "statusTimestampAfter");
}

/** The last task of the previous page. */
export interface PageToken {
  readonly updatedAtMs: number;
  readonly id: string;
}

export function writePageToken({ updatedAtMs, id: lastId }: PageToken): string {
  return Buffer.from(`${updatedAtMs}.${lastId}`).toString("base64url");
}

export function readPageToken(token: string | undefined): PageToken | undefined {
  if (token === undefined || token === "") return undefined;
  const [, updatedAtMs, lastId] =
    /^(\d{1,16})\.(.+)$/s.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (updatedAtMs === undefined || lastId === undefined) {
    throw new RelayError("invalid_argument", "pageToken: is not one that this relay gave; begin without it");
  }
  return { updatedAtMs: Number(updatedAtMs), id: parseRecordId(lastId, "pageToken") };
}
