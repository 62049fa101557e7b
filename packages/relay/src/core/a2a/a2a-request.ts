import {
  LIMITS,
  parseInstant,
  PartsSchema,
  readTaskState,
  RelayError,
  type TaskState,
} from "@a2a-relay/protocol";
import { type Static, Type } from "typebox";
import { parserOf, shapeParserOf } from "../mechanisms/schema-check.ts";
import { threadOfContext } from "../tasks/context-id.ts";

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
    /** The name that a caller of A2A 0.1 gives its task. */
    clientTaskId: Type.Optional(id),
  },
  open,
);
export type A2aSendRequest = Static<typeof SendSchema>;

const TaskSchema = Type.Object({ id, historyLength, metadata: Type.Optional(members) }, open);
export type A2aTaskRequest = Static<typeof TaskSchema>;

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

/** What becomes a message is looked through once more, as every message is. */
const parseSendMembers = shapeParserOf(SendSchema, "params");

/** What the mailbox would refuse under a name of its own is refused here, under the one that its caller knows. */
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

/** What libraries write for a member that nobody set. */
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

/** Of the page before: the time of its last task and its id. */
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
  return { updatedAtMs: Number(updatedAtMs), id: lastId };
}
