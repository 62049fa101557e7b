import { type Static, Type } from "typebox";
import type { MailboxItem } from "./answers.ts";
import { exactly, type Frozen, instantSchema, membersSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";
import type { ErrorBody } from "../base/relay-error.ts";

/** `Last-Event-ID` means the same, and wins where both are given. */
const since = Type.Optional(
  Type.String({ maxLength: 40, description: "A cursor: only what came after it. Absent: from the oldest." }),
);

const mailboxQuery = {
  since,
  peek: Type.Optional(Type.Boolean({ default: false, description: "Read without marking as delivered." })),
  notice: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Only notices, not the messages; marks nothing as delivered.",
    }),
  ),
};

/** `GET /mailbox/{agent}/stream`. Without a cursor it starts with all open deliveries. */
export const MailboxStreamQuerySchema = exactly(mailboxQuery);
export type MailboxStreamQuery = Static<typeof MailboxStreamQuerySchema>;

/** `WS /mailbox/{agent}/ws`. */
export const MailboxSocketQuerySchema = exactly({
  ...mailboxQuery,
  quiet: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Sends no messages by itself; the socket only answers requests.",
    }),
  ),
});
export type MailboxSocketQuery = Static<typeof MailboxSocketQuerySchema>;

/** `GET /tasks/{id}/events`. */
export const TaskEventsQuerySchema = exactly({ since });
export type TaskEventsQuery = Static<typeof TaskEventsQuerySchema>;

/** A message's header, without the message. */
export const MailboxNoticeSchema = Type.Object(
  {
    message_id: Type.String(),
    task_id: Type.Optional(Type.String()),
    sender_agent_id: Type.String(),
    type: Type.String(),
    subject: Type.String(),
    urgency: Type.Optional(Type.String()),
  },
  { title: "MailboxNotice" },
);
export type MailboxNotice = Frozen<Static<typeof MailboxNoticeSchema>>;

/** Names of server-sent events. Each has an `id`, which is its cursor, and JSON in `data`; heartbeats are comments. */
export const STREAM_EVENTS = ["message", "notice", "event"] as const;
export type StreamEventName = (typeof STREAM_EVENTS)[number];

/** The relay announces its heartbeat interval of a stream in this header, in milliseconds. */
export const HEARTBEAT_HEADER = "x-a2a-heartbeat-ms";

/** A journal event about a task, without its hashes, for the participants of the task. */
export const TaskEventViewSchema = Type.Object(
  {
    seq: Type.Integer(),
    type: Type.String(),
    at: instantSchema,
    actor: Type.String(),
    agent: Type.Optional(Type.String()),
    message_id: Type.Optional(Type.String()),
    task_id: Type.String(),
    data: membersSchema,
  },
  { title: "TaskEvent" },
);
export type TaskEventView = Frozen<Static<typeof TaskEventViewSchema>>;

export const TaskEventsResponseSchema = Type.Object({
  events: Type.Array(TaskEventViewSchema),
  cursor: Type.String(),
});
export type TaskEventsResponse = Frozen<Static<typeof TaskEventsResponseSchema>>;

/** The requests of a socket. */
export const SOCKET_VERBS = ["send", "send_batch", "lease", "renew", "release", "ack", "fail"] as const;
export type SocketVerb = (typeof SOCKET_VERBS)[number];

export const SocketRequestSchema = exactly({
  id: Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax, description: "Returned with the answer." }),
  verb: Type.Enum(SOCKET_VERBS),
  input: Type.Optional(Type.Unsafe<unknown>(Type.Any())),
});
export interface SocketRequest {
  readonly id: string;
  readonly verb: SocketVerb;
  readonly input?: unknown;
}

/** The frames that a relay sends over a socket, each one JSON text. */
export type SocketFrame =
  | { readonly type: "mail"; readonly messages: readonly MailboxItem[]; readonly cursor: string }
  | { readonly type: "notice"; readonly notices: readonly MailboxNotice[]; readonly cursor: string }
  | { readonly type: "answer"; readonly id: string; readonly body: unknown }
  | ({ readonly type: "answer"; readonly id: string } & ErrorBody)
  /** The request could not be read, so there is no id. */
  | ({ readonly type: "error" } & ErrorBody);

/** Close codes of a socket. The close reason is a sentence; for `slow` it is the cursor to resume from. */
export const SOCKET_CLOSE = {
  stopping: 1001,
  tooLarge: 1009,
  internal: 1011,
  unauthenticated: 4401,
  refused: 4403,
  slow: 4408,
} as const;

/** The subprotocol of the socket. Browsers cannot set headers, so the key may be a second subprotocol. */
export const SOCKET_PROTOCOL = "a2a-relay.v1";
/** Followed by the key in base64url without padding. */
export const SOCKET_KEY_PREFIX = "a2a-relay.key.";
