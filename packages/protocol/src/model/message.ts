import { type Static, Type } from "typebox";
import { LIMITS } from "../base/limits.ts";
import { type Frozen, idSchema, instantSchema, nullable, openObject } from "../base/schema.ts";
import { PartSchema, PartsSchema } from "./part.ts";
import { TASK_STATES } from "./task.ts";

export const MESSAGE_VERSION = "a2a.v1";

export const MESSAGE_KINDS = [
  "note",
  "request",
  "reply",
  "status",
  "alert",
  "handoff",
  "memory",
  "heartbeat",
] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

export const URGENCIES = ["low", "normal", "high"] as const;
export type Urgency = (typeof URGENCIES)[number];

export const DUPLICATE_SAFETIES = ["unsafe", "idempotent"] as const;
export type DuplicateSafety = (typeof DUPLICATE_SAFETIES)[number];

const nullableId = nullable(idSchema);
const nullableText = nullable(Type.String());
/** The latest time that a JavaScript date can represent. */
const LATEST_MS = 8_640_000_000_000_000;
const key = Type.String({ minLength: 1, maxLength: LIMITS.idempotencyKeyCharsMax, pattern: "\\S" });

/**
 * A message in the `a2a.v1` JSON, as a sender writes it: the relay fills what is absent, `null` means absent, and
 * unknown members are kept.
 */
export const MessageInputSchema = Type.Object(
  {
    version: Type.Optional(Type.Literal(MESSAGE_VERSION)),
    id: nullableId,
    from: Type.Optional(Type.String({ description: "Follows from the credential; an operator names it." })),
    to: Type.String({
      description: "An agent id or alias, or the URL of a remote A2A agent.",
      maxLength: LIMITS.urlCharsMax,
    }),
    type: Type.Optional(Type.Enum(MESSAGE_KINDS, { default: "note" })),
    subject: Type.Optional(Type.String({ maxLength: LIMITS.subjectCharsMax })),
    body: Type.Optional(Type.String()),
    parts: Type.Optional(PartsSchema),
    created_at: nullableText,
    urgency: Type.Optional(Type.Enum(URGENCIES, { default: "normal" })),
    needs_reply: Type.Optional(Type.Boolean()),
    reply_to: nullableId,
    thread_id: nullableId,
    task_id: nullableId,
    parent: nullableId,
    deadline_ms: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: LATEST_MS }), Type.Null()], {
        description: "The absolute time, in epoch milliseconds, by which the task must be finished.",
      }),
    ),
    task_state: Type.Optional(Type.Enum(TASK_STATES)),
    plain: Type.Optional(Type.Boolean({ description: "Answer a waiting A2A caller with a plain message." })),
    a2a_message: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Members of the A2A message beside its parts: messageId, metadata, extensions.",
      }),
    ),
    decision: Type.Optional(Type.Enum(["accepted", "declined"] as const)),
    attachments: Type.Optional(Type.Unknown()),
    capabilities_requested: Type.Optional(Type.Array(Type.String())),
    human_approval_required: Type.Optional(Type.Boolean()),
    status: Type.Optional(Type.String()),
    idempotency_key: Type.Optional(Type.Union([key, Type.Null()])),
    idempotency: Type.Optional(
      Type.Union([Type.Object({ duplicate_safety: Type.Enum(DUPLICATE_SAFETIES), key }), Type.Null()]),
    ),
    signature: nullableText,
    key_id: nullableText,
    nonce: nullableText,
    signed_at: nullableText,
    expires_at: nullableText,
    traceparent: nullableText,
    tracestate: nullableText,
    lease_id: Type.Optional(
      Type.Union([idSchema, Type.Null()], {
        description: "The lease of the delivery that a reply, status or handoff finishes. Not stored.",
      }),
    ),
  },
  { additionalProperties: true, title: "MessageInput" },
);
export type MessageInput = Static<typeof MessageInputSchema>;

const signedText = (charsMax: number, description: string) =>
  Type.String({ minLength: 1, maxLength: charsMax, description });

/**
 * A signed message for `POST /api/a2a/inbox`; the key names the sender. The signature covers the canonical JSON of all
 * other members, known and unknown.
 */
export const SignedMessageSchema = Type.Object(
  {
    ...MessageInputSchema.properties,
    key_id: signedText(LIMITS.idCharsMax, "The signing key; its agent is the sender."),
    nonce: signedText(LIMITS.nonceCharsMax, "Never used before with this key."),
    signed_at: signedText(40, "ISO 8601, within minutes of the relay's clock."),
    signature: signedText(
      LIMITS.signatureCharsMax,
      "`v1,` and the HMAC-SHA256 in base64; of several, separated by blanks, one has to be right.",
    ),
  },
  { additionalProperties: true, title: "SignedMessage" },
);
export type SignedMessage = Static<typeof SignedMessageSchema>;

/** The members of a stored message; others are kept as the sender wrote them. */
export const messageMembers = {
  version: Type.Literal(MESSAGE_VERSION),
  id: Type.String(),
  from: Type.String(),
  to: Type.String(),
  type: Type.Enum(MESSAGE_KINDS),
  subject: Type.String(),
  body: Type.String(),
  created_at: instantSchema,
  thread_id: Type.String(),
  urgency: Type.Enum(URGENCIES),
  needs_reply: Type.Boolean(),
  expires_at: Type.Optional(instantSchema),
  reply_to: Type.Optional(Type.String()),
  task_id: Type.Optional(Type.String()),
  parent: Type.Optional(Type.String()),
  deadline_ms: Type.Optional(Type.Integer()),
  parts: Type.Optional(Type.Array(PartSchema)),
};

/** A message as the relay stores it: immutable, complete, already checked. */
export const MessageSchema = openObject(messageMembers, "Message");
export type Message = Frozen<Static<typeof MessageSchema>>;
