import { type Static, Type } from "typebox";
import type {
  AckResponse,
  BatchResponse,
  LeaseResponse,
  MailboxItem,
  ReleaseResponse,
  RenewResponse,
  SendResponse,
} from "./api.ts";
import { exactly } from "./exactly.ts";
import { LIMITS } from "./limits.ts";
import type { ErrorBody } from "./relay-error.ts";

/** Where a stream goes on: `Last-Event-ID` says the same, and counts where both are given. */
const since = Type.Optional(
  Type.String({ maxLength: 40, description: "A cursor: what comes after it. Absent: from the oldest." }),
);

const shown = {
  since,
  peek: Type.Optional(Type.Boolean({ default: false, description: "Leaves no mark on what is shown." })),
  notice: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Only what there is, not the messages; leaves no mark either.",
    }),
  ),
};

/** `GET /mailbox/{agent}/stream`. Without a cursor it starts with all open mail. */
export const MailboxStreamQuerySchema = exactly(shown);
export type MailboxStreamQuery = Static<typeof MailboxStreamQuerySchema>;

/** `WS /mailbox/{agent}/ws`. */
export const MailboxSocketQuerySchema = exactly({
  ...shown,
  quiet: Type.Optional(
    Type.Boolean({ default: false, description: "Shows no mail by itself; the socket only answers." }),
  ),
});
export type MailboxSocketQuery = Static<typeof MailboxSocketQuerySchema>;

/** `GET /tasks/{id}/events`. */
export const TaskEventsQuerySchema = exactly({ since });
export type TaskEventsQuery = Static<typeof TaskEventsQuerySchema>;

/** That there is mail, without the message. */
export interface MailboxNotice {
  readonly message_id: string;
  readonly task_id?: string;
  readonly sender_agent_id: string;
  readonly type: string;
  readonly subject: string;
  readonly urgency?: string;
}

/** Names of server-sent events. Each has an `id`, which is its cursor, and JSON in `data`; heartbeats are comments. */
export const STREAM_EVENTS = ["message", "notice", "event"] as const;
export type StreamEventName = (typeof STREAM_EVENTS)[number];

/** How often there is a sign of life on a stream, in milliseconds, as the relay says with its answer. */
export const HEARTBEAT_HEADER = "x-a2a-heartbeat-ms";

/** A fact about a task, as those who take part in it see it: an event of the journal without its hashes. */
export interface TaskEventView {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly actor: string;
  readonly agent?: string;
  readonly message_id?: string;
  readonly task_id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What can be asked over a socket; `input` is the body of the route of the same name. */
export const SOCKET_VERBS = ["send", "send_batch", "lease", "renew", "release", "ack", "fail"] as const;
export type SocketVerb = (typeof SOCKET_VERBS)[number];

export const SocketRequestSchema = exactly({
  id: Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax, description: "Comes back with the answer." }),
  verb: Type.Enum(SOCKET_VERBS),
  input: Type.Optional(Type.Unsafe<unknown>(Type.Any())),
});
export interface SocketRequest {
  readonly id: string;
  readonly verb: SocketVerb;
  readonly input?: unknown;
}

/** What each verb answers: the body of its route. */
export interface SocketAnswers {
  readonly send: SendResponse;
  readonly send_batch: BatchResponse;
  readonly lease: LeaseResponse;
  readonly renew: RenewResponse;
  readonly release: ReleaseResponse;
  readonly ack: AckResponse;
  readonly fail: unknown;
}

/** All that a relay says over a socket; one JSON text a frame. */
export type SocketFrame =
  | { readonly type: "mail"; readonly messages: readonly MailboxItem[]; readonly cursor: string }
  | { readonly type: "notice"; readonly notices: readonly MailboxNotice[]; readonly cursor: string }
  | { readonly type: "answer"; readonly id: string; readonly body: unknown }
  | ({ readonly type: "answer"; readonly id: string } & ErrorBody)
  /** What was sent could not be read as a request, so there is no id to answer to. */
  | ({ readonly type: "error" } & ErrorBody);

/** Why a relay closes a socket. The reason of the frame is a sentence; for `slow` it is the cursor to go on from. */
export const SOCKET_CLOSE = {
  stopping: 1001,
  tooLarge: 1009,
  internal: 1011,
  unauthenticated: 4401,
  refused: 4403,
  slow: 4408,
} as const;

/** The subprotocol of the socket. Browsers cannot send a key in a header, so it may come as a second subprotocol. */
export const SOCKET_PROTOCOL = "a2a-relay.v1";
/** Followed by the key in base64url without padding. */
export const SOCKET_KEY_PREFIX = "a2a-relay.key.";
