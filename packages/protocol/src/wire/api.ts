import { type Static, type TSchema, Type } from "typebox";
import { exactly, idSchema, listLimitSchema, reasonSchema, waitMsSchema } from "../base/schema.ts";
import type { AgentView } from "../model/agent.ts";
import type { DeliveryView, LeaseView, Receipt, ReceiptStep } from "../model/delivery.ts";
import { LIMITS } from "../base/limits.ts";
import { type Message, MessageInputSchema } from "../model/message.ts";
import type { PushView } from "../model/push.ts";
import type { ErrorBody } from "../base/relay-error.ts";
import { TASK_STATES, type TaskSummary } from "../model/task.ts";

/** Query strings carry numbers as text; the core reads both. */
const count = (maximum: number, fallback: number): TSchema =>
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

export interface MailboxRead {
  readonly since?: string;
  readonly limit?: number;
  readonly wait_ms?: number;
  readonly peek?: boolean;
}

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
export interface LeaseRequest {
  readonly max?: number;
  readonly lease_ms?: number | null;
  readonly wait_ms?: number;
  readonly worker?: string;
}

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
export interface AgentsQuery {
  readonly page_token?: string;
  readonly limit?: number;
}

export const TasksQuerySchema = exactly({
  state: Type.Optional(Type.Enum(TASK_STATES)),
  agent: Type.Optional(id),
  thread_id: Type.Optional(id),
  parent: Type.Optional(id),
  since: cursor,
  limit: listLimitSchema,
});
export interface TasksQuery {
  readonly state?: (typeof TASK_STATES)[number];
  readonly agent?: string;
  readonly thread_id?: string;
  readonly parent?: string;
  readonly since?: string;
  readonly limit?: number;
}

export const ThreadsQuerySchema = exactly({
  agent: Type.Optional(id),
  before: cursor,
  limit: listLimitSchema,
});
export interface ThreadsQuery {
  readonly agent?: string;
  readonly before?: string;
  readonly limit?: number;
}

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
export interface EventsQuery {
  readonly since?: string;
  readonly type?: string;
  readonly agent?: string;
  readonly thread?: string;
  readonly limit?: number;
  readonly wait_ms?: number;
}

export interface RegisterResponse {
  readonly agent_id: string;
  readonly created: boolean;
  /** The agent's API key; only in the answer to its first registration. */
  readonly api_key?: string;
  /** The secret that signs pushes; only in the answer to the first registration with push. */
  readonly push_secret?: string;
  readonly agent: AgentView;
}

export interface AgentsResponse {
  readonly items: readonly AgentView[];
  readonly agents: readonly AgentView[];
  readonly total: number;
  readonly pageToken?: string;
}

export interface SendResponse {
  readonly message: Message;
  readonly receipt: Receipt;
}

export type BatchItem =
  | ({ readonly status: 200 | 201 } & SendResponse)
  | ({ readonly status: number } & ErrorBody);

export interface BatchResponse {
  readonly results: readonly BatchItem[];
}

export interface MessageResponse {
  readonly message: Message;
  readonly delivery?: DeliveryView;
  readonly task_id?: string;
  readonly receipts: readonly ReceiptStep[];
  /** Absent when it was not pushed. */
  readonly push?: PushView;
}

export interface MailboxItem {
  readonly id: string;
  readonly message_id: string;
  readonly task_id?: string;
  readonly status: "PENDING" | "DELIVERED";
  readonly sender_agent_id: string;
  readonly message: Message;
  readonly a2a_payload: Readonly<Record<string, unknown>>;
  readonly lease?: LeaseView;
}

export interface MailboxResponse {
  readonly messages: readonly MailboxItem[];
  readonly cursor: string;
}

export interface LeaseResponse {
  readonly messages: readonly (MailboxItem & { readonly lease: LeaseView })[];
}

export type ItemResult =
  | { readonly message_id: string; readonly ok: true; readonly lease?: LeaseView }
  | ({ readonly message_id: string; readonly ok: false } & ErrorBody);

export interface AckResponse {
  readonly acknowledged: number;
  readonly results: readonly ItemResult[];
}

export interface RenewResponse {
  readonly renewed: number;
  readonly results: readonly ItemResult[];
}

export interface ReleaseResponse {
  readonly released: number;
  readonly results: readonly ItemResult[];
}

export interface TasksResponse {
  readonly tasks: readonly TaskSummary[];
  readonly cursor?: string;
}

export interface ThreadView {
  readonly thread_id: string;
  readonly subject: string;
  readonly participants: readonly string[];
  readonly message_count: number;
  readonly open_count: number;
  readonly first_at: string;
  readonly last_at: string;
}

export interface ThreadsResponse {
  readonly threads: readonly ThreadView[];
  readonly cursor?: string;
}

export interface ThreadResponse {
  readonly thread_id: string;
  readonly messages: readonly (Message & { readonly delivery_state?: string })[];
  readonly truncated: boolean;
}

export interface EventView {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  /** The hash covers it, so checking an event needs it. */
  readonly tenant: string;
  readonly actor: string;
  readonly agent?: string;
  readonly message_id?: string;
  readonly task_id?: string;
  readonly thread_id?: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly previous_hash: string;
  readonly hash: string;
}

export interface EventsResponse {
  readonly events: readonly EventView[];
  readonly cursor: string;
  readonly has_more: boolean;
}

export interface VerifyResponse {
  readonly ok: boolean;
  readonly events: number;
  readonly messages: number;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly head: string;
  /** The latest anchor outside the log; absent before the first one. */
  readonly anchor?: AnchorView;
  /** The newest anchor of any relay on this store, where this relay's directory has none as new. It proves nothing. */
  readonly anchor_elsewhere?: AnchorView;
  readonly problem?: string;
}

export interface AnchorView {
  readonly seq: number;
  readonly hash: string;
  readonly at: string;
}

export interface HealthResponse {
  readonly status: "ok";
  readonly version: string;
}
