import { type Static, Type } from "typebox";
import { exactly, idSchema, listLimitSchema, reasonSchema, waitMsSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";
import { MessageInputSchema } from "../model/message.ts";
import { TASK_STATES } from "../model/task.ts";

/** Query strings carry numbers as text; the core reads both. */
const count = (maximum: number, fallback: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, default: fallback }));
const id = idSchema;
const cursor = Type.Optional(
  Type.String({ maxLength: 40, description: "A cursor from an earlier answer; only what came after it." }),
);

export const BatchRequestSchema = exactly({
  messages: Type.Array(MessageInputSchema, { minItems: 1, maxItems: LIMITS.batchMessagesMax }),
  atomic: Type.Optional(Type.Boolean({ default: false, description: "All or none." })),
});
export type BatchRequest = Static<typeof BatchRequestSchema>;

export const MailboxReadSchema = exactly({
  since: cursor,
  limit: count(LIMITS.readLimitMax, LIMITS.readLimitDefault),
  wait_ms: waitMsSchema,
  peek: Type.Optional(Type.Boolean({ default: false, description: "Read without marking as delivered." })),
});
export type MailboxRead = Static<typeof MailboxReadSchema>;

/** Callers may pass a whole lease back, so other members are allowed. */
const leaseRef = Type.Object({ message_id: id, lease_id: id });
export type LeaseRef = Static<typeof leaseRef>;

export const AckRequestSchema = exactly({
  message_ids: Type.Optional(Type.Array(id, { maxItems: LIMITS.ackMax })),
  leases: Type.Optional(Type.Array(leaseRef, { maxItems: LIMITS.ackMax })),
});
export type AckRequest = Static<typeof AckRequestSchema>;

const leaseMs = Type.Integer({ minimum: LIMITS.leaseMsMin, maximum: LIMITS.leaseMsMax });

export const LeaseRequestSchema = exactly({
  max: count(LIMITS.leaseCountMax, 1),
  lease_ms: Type.Optional(
    Type.Union([leaseMs, Type.Null()], { description: "Absent: the lease does not expire." }),
  ),
  wait_ms: waitMsSchema,
  worker: Type.Optional(id),
});
export type LeaseRequest = Static<typeof LeaseRequestSchema>;

/** A list of leases, or one lease by its two fields. */
const leaseRefs = {
  leases: Type.Optional(Type.Array(leaseRef, { minItems: 1, maxItems: LIMITS.ackMax })),
  message_id: Type.Optional(id),
  lease_id: Type.Optional(id),
};

export const RenewRequestSchema = exactly({ ...leaseRefs, lease_ms: leaseMs });
export type RenewRequest = Static<typeof RenewRequestSchema>;

export const ReleaseRequestSchema = exactly(leaseRefs);
export type ReleaseRequest = Static<typeof ReleaseRequestSchema>;

export const FailRequestSchema = exactly({
  message_id: id,
  lease_id: Type.Optional(id),
  reason: reasonSchema,
});
export type FailRequest = Static<typeof FailRequestSchema>;

export const AgentsQuerySchema = exactly({
  page_token: Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax })),
  limit: listLimitSchema,
});
export type AgentsQuery = Static<typeof AgentsQuerySchema>;

export const TasksQuerySchema = exactly({
  state: Type.Optional(Type.Enum(TASK_STATES)),
  agent: Type.Optional(id),
  thread_id: Type.Optional(id),
  parent: Type.Optional(id),
  since: cursor,
  limit: listLimitSchema,
});
export type TasksQuery = Static<typeof TasksQuerySchema>;

export const ThreadsQuerySchema = exactly({
  agent: Type.Optional(id),
  before: cursor,
  limit: listLimitSchema,
});
export type ThreadsQuery = Static<typeof ThreadsQuerySchema>;

export const EventsQuerySchema = exactly({
  since: Type.Optional(
    Type.String({
      maxLength: 40,
      description: "A cursor from an earlier answer, or latest to start at the end.",
    }),
  ),
  type: Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax })),
  agent: Type.Optional(id),
  thread: Type.Optional(id),
  limit: listLimitSchema,
  wait_ms: waitMsSchema,
});
export type EventsQuery = Static<typeof EventsQuerySchema>;
