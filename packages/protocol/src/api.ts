import { type Static, type TSchema, Type } from "typebox";
import { exactly } from "./exactly.ts";
import type { AgentView } from "./agent.ts";
import {
  DELIVERY_STATES,
  type DeliveryView,
  DUPLICATE_RISKS,
  type LeaseView,
  type Receipt,
  type ReceiptStep,
} from "./delivery.ts";
import { LIMITS } from "./limits.ts";
import { type Message, MessageInputSchema } from "./message.ts";
import type { PushView } from "./push.ts";
import type { ErrorBody } from "./relay-error.ts";
import { TASK_STATES, type TaskSummary } from "./task.ts";

/** Query strings carry numbers as text; the core reads both. */
const count = (maximum: number, fallback: number): TSchema =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, default: fallback }));
const id = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
const cursor = Type.Optional(
  Type.String({ maxLength: 40, description: "A cursor from an earlier answer; mail after it." }),
);
const waitMs = Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.waitMsMax, default: 0 }));
const reason = Type.String({ minLength: 1, maxLength: LIMITS.reasonCharsMax, pattern: "\\S" });

export const BatchRequestSchema = exactly({
  messages: Type.Array(MessageInputSchema, { minItems: 1, maxItems: LIMITS.batchMessagesMax }),
  atomic: Type.Optional(Type.Boolean({ default: false, description: "All or none." })),
});
export type BatchRequest = Static<typeof BatchRequestSchema>;

export const MailboxReadSchema = exactly({
  since: cursor,
  limit: count(LIMITS.readLimitMax, LIMITS.readLimitDefault),
  wait_ms: waitMs,
  peek: Type.Optional(Type.Boolean({ default: false, description: "Look without marking as delivered." })),
});

export interface MailboxRead {
  readonly since?: string;
  readonly limit?: number;
  readonly wait_ms?: number;
  readonly peek?: boolean;
}

/** A whole lease may be handed back as it came, so other members are let through. */
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
    Type.Union([leaseMs, Type.Null()], { description: "Absent: until somebody acts on it." }),
  ),
  wait_ms: waitMs,
  worker: Type.Optional(id),
});
export interface LeaseRequest {
  readonly max?: number;
  readonly lease_ms?: number | null;
  readonly wait_ms?: number;
  readonly worker?: string;
}

/** Many leases as a list, or one by its own two fields. */
const leaseRefs = {
  leases: Type.Optional(Type.Array(leaseRef, { minItems: 1, maxItems: LIMITS.ackMax })),
  message_id: Type.Optional(id),
  lease_id: Type.Optional(id),
};

export const RenewRequestSchema = exactly({ ...leaseRefs, lease_ms: leaseMs });
export type RenewRequest = Static<typeof RenewRequestSchema>;

export const ReleaseRequestSchema = exactly(leaseRefs);
export type ReleaseRequest = Static<typeof ReleaseRequestSchema>;

export const FailRequestSchema = exactly({ message_id: id, lease_id: Type.Optional(id), reason });
export type FailRequest = Static<typeof FailRequestSchema>;

export const RepairRequestSchema = exactly({
  message_id: Type.Optional(id),
  task_id: Type.Optional(id),
  reason,
  command: Type.Union([
    exactly({
      action: Type.Literal("requeue"),
      lease_id: Type.Optional(id),
      duplicate_risk: Type.Enum(DUPLICATE_RISKS),
    }),
    exactly({
      action: Type.Literal("force_error"),
      lease_id: Type.Optional(id),
      message: reason,
    }),
  ]),
});
export type RepairRequest = Static<typeof RepairRequestSchema>;

export const AgentsQuerySchema = exactly({
  page_token: Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax })),
  limit: count(LIMITS.listLimitMax, LIMITS.listLimitDefault),
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
  limit: count(LIMITS.listLimitMax, LIMITS.listLimitDefault),
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
  limit: count(LIMITS.listLimitMax, LIMITS.listLimitDefault),
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
  limit: count(LIMITS.listLimitMax, LIMITS.listLimitDefault),
  wait_ms: waitMs,
});
export interface EventsQuery {
  readonly since?: string;
  readonly type?: string;
  readonly agent?: string;
  readonly thread?: string;
  readonly limit?: number;
  readonly wait_ms?: number;
}

export const QueueQuerySchema = exactly({
  state: Type.Optional(Type.Enum(DELIVERY_STATES)),
  agent: Type.Optional(id),
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  deadline_within_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: count(LIMITS.listLimitMax, LIMITS.listLimitDefault),
});
export interface QueueQuery {
  readonly state?: (typeof DELIVERY_STATES)[number];
  readonly agent?: string;
  readonly min_lease_age_ms?: number;
  readonly deadline_within_ms?: number;
  readonly limit?: number;
}

export interface RegisterResponse {
  readonly agent_id: string;
  readonly created: boolean;
  /** The agent's own API key: in the answer to its first registration, and never again. */
  readonly api_key?: string;
  /** What pushes to the agent are signed with: in the answer that first asks for push, and never again. */
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
  /** Absent where it was not pushed. */
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
  /** The hash covers it too, so that nobody can check an event without it. */
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

export interface QueueEntry {
  readonly message_id: string;
  readonly task_id?: string;
  readonly recipient: string;
  readonly sender: string;
  readonly kind: string;
  readonly subject: string;
  readonly state: string;
  readonly attempt: number;
  readonly duplicate_safety: string;
  readonly accepted_at: string;
  readonly deadline_ms?: number;
  readonly lease_age_ms?: number;
  readonly lease?: LeaseView;
}

export interface QueueResponse {
  readonly entries: readonly QueueEntry[];
  readonly totals: Readonly<Record<string, number>>;
}

export interface RepairResponse {
  readonly message_id: string;
  readonly task_id?: string;
  readonly action: "requeued" | "forced_error";
  readonly state: string;
  readonly attempt: number;
}

export interface VerifyResponse {
  readonly ok: boolean;
  readonly events: number;
  readonly messages: number;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly head: string;
  /** What was last seen of the chain from outside the log; absent when nothing was yet. */
  readonly anchor?: AnchorView;
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
