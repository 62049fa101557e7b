import { type Static, Type } from "typebox";
import { type Frozen, instantSchema, membersSchema, openObject } from "../base/schema.ts";
import { ErrorBodySchema } from "../base/relay-error.ts";
import { AgentViewSchema } from "../model/agent.ts";
import { DeliveryViewSchema, LeaseViewSchema, ReceiptSchema, ReceiptStepSchema } from "../model/delivery.ts";
import { messageMembers, MessageSchema } from "../model/message.ts";
import { PushViewSchema } from "../model/push.ts";
import { TaskSummarySchema, TaskTreeViewSchema, TaskViewSchema } from "../model/task.ts";

/*
 * The bodies of answers. Their objects do not forbid further members: a client reads the answers of newer relays too.
 * A test forbids them, so that each schema is complete. A member that is added later is optional, because the client
 * requires the others of older relays too.
 */

export const RegisterResponseSchema = Type.Object({
  agent_id: Type.String(),
  created: Type.Boolean(),
  api_key: Type.Optional(
    Type.String({ description: "The agent's API key; only in the answer to its first registration." }),
  ),
  push_secret: Type.Optional(
    Type.String({
      description: "The secret that signs pushes; only in the answer to the first registration with push.",
    }),
  ),
  agent: AgentViewSchema,
});
export type RegisterResponse = Frozen<Static<typeof RegisterResponseSchema>>;

export const AgentsResponseSchema = Type.Object({
  agents: Type.Array(AgentViewSchema),
  items: Type.Array(AgentViewSchema),
  total: Type.Integer(),
  pageToken: Type.Optional(Type.String()),
});
export type AgentsResponse = Frozen<Static<typeof AgentsResponseSchema>>;

export const AgentRemovedSchema = Type.Object({ removed: Type.String({ description: "The agent's id." }) });
export type AgentRemoved = Frozen<Static<typeof AgentRemovedSchema>>;

const sentMembers = { message: MessageSchema, receipt: ReceiptSchema };

export const SendResponseSchema = Type.Object(sentMembers, { title: "Sent" });
export type SendResponse = Frozen<Static<typeof SendResponseSchema>>;

export const BatchItemSchema = Type.Union([
  Type.Object({ status: Type.Enum([200, 201] as const), ...sentMembers }),
  Type.Object({ status: Type.Integer(), ...ErrorBodySchema.properties }),
]);
export type BatchItem = Frozen<Static<typeof BatchItemSchema>>;

export const BatchResponseSchema = Type.Object({ results: Type.Array(BatchItemSchema) });
export type BatchResponse = Frozen<Static<typeof BatchResponseSchema>>;

export const MessageResponseSchema = Type.Object({
  message: MessageSchema,
  delivery: Type.Optional(DeliveryViewSchema),
  task_id: Type.Optional(Type.String()),
  receipts: Type.Array(ReceiptStepSchema),
  push: Type.Optional(PushViewSchema),
});
export type MessageResponse = Frozen<Static<typeof MessageResponseSchema>>;

const mailboxItemMembers = {
  id: Type.String(),
  message_id: Type.String(),
  task_id: Type.Optional(Type.String()),
  status: Type.Enum(["PENDING", "DELIVERED"] as const),
  sender_agent_id: Type.String(),
  message: MessageSchema,
  a2a_payload: membersSchema,
};

export const MailboxItemSchema = Type.Object(
  { ...mailboxItemMembers, lease: Type.Optional(LeaseViewSchema) },
  { title: "MailboxItem" },
);
export type MailboxItem = Frozen<Static<typeof MailboxItemSchema>>;

export const MailboxResponseSchema = Type.Object({
  messages: Type.Array(MailboxItemSchema),
  cursor: Type.String(),
});
export type MailboxResponse = Frozen<Static<typeof MailboxResponseSchema>>;

export const LeaseResponseSchema = Type.Object({
  messages: Type.Array(
    Type.Object({ ...mailboxItemMembers, lease: LeaseViewSchema }, { title: "LeasedItem" }),
  ),
});
export type LeaseResponse = Frozen<Static<typeof LeaseResponseSchema>>;

export const ItemResultSchema = Type.Union([
  Type.Object({
    message_id: Type.String(),
    ok: Type.Literal(true),
    lease: Type.Optional(LeaseViewSchema),
  }),
  Type.Object({
    message_id: Type.String(),
    ok: Type.Literal(false),
    ...ErrorBodySchema.properties,
  }),
]);
export type ItemResult = Frozen<Static<typeof ItemResultSchema>>;
const results = Type.Array(ItemResultSchema);

export const AckResponseSchema = Type.Object({ acknowledged: Type.Integer(), results });
export type AckResponse = Frozen<Static<typeof AckResponseSchema>>;

export const RenewResponseSchema = Type.Object({ renewed: Type.Integer(), results });
export type RenewResponse = Frozen<Static<typeof RenewResponseSchema>>;

export const ReleaseResponseSchema = Type.Object({ released: Type.Integer(), results });
export type ReleaseResponse = Frozen<Static<typeof ReleaseResponseSchema>>;

export const FailResponseSchema = Type.Object({ delivery: DeliveryViewSchema });
export type FailResponse = Frozen<Static<typeof FailResponseSchema>>;

export const TaskResponseSchema = Type.Object({ task: TaskViewSchema });
export type TaskResponse = Frozen<Static<typeof TaskResponseSchema>>;

export const TaskTreeResponseSchema = Type.Object({ tree: TaskTreeViewSchema });
export type TaskTreeResponse = Frozen<Static<typeof TaskTreeResponseSchema>>;

export const TasksResponseSchema = Type.Object({
  tasks: Type.Array(TaskSummarySchema),
  cursor: Type.Optional(Type.String()),
});
export type TasksResponse = Frozen<Static<typeof TasksResponseSchema>>;

export const ThreadViewSchema = Type.Object(
  {
    thread_id: Type.String(),
    subject: Type.String(),
    participants: Type.Array(Type.String()),
    message_count: Type.Integer(),
    open_count: Type.Integer(),
    first_at: instantSchema,
    last_at: instantSchema,
  },
  { title: "Thread" },
);
export type ThreadView = Frozen<Static<typeof ThreadViewSchema>>;

export const ThreadsResponseSchema = Type.Object({
  threads: Type.Array(ThreadViewSchema),
  cursor: Type.Optional(Type.String()),
});
export type ThreadsResponse = Frozen<Static<typeof ThreadsResponseSchema>>;

export const ThreadResponseSchema = Type.Object({
  thread_id: Type.String(),
  messages: Type.Array(
    openObject({ ...messageMembers, delivery_state: Type.Optional(Type.String()) }, "ThreadMessage"),
  ),
  truncated: Type.Boolean(),
});
export type ThreadResponse = Frozen<Static<typeof ThreadResponseSchema>>;

export const EventViewSchema = Type.Object(
  {
    seq: Type.Integer(),
    type: Type.String(),
    at: instantSchema,
    tenant: Type.String({ description: "The hash covers it, so checking an event needs it." }),
    actor: Type.String(),
    agent: Type.Optional(Type.String()),
    message_id: Type.Optional(Type.String()),
    task_id: Type.Optional(Type.String()),
    thread_id: Type.Optional(Type.String()),
    data: membersSchema,
    previous_hash: Type.String(),
    hash: Type.String(),
  },
  { title: "Event" },
);
export type EventView = Frozen<Static<typeof EventViewSchema>>;

export const EventsResponseSchema = Type.Object({
  events: Type.Array(EventViewSchema),
  cursor: Type.String(),
  has_more: Type.Boolean(),
});
export type EventsResponse = Frozen<Static<typeof EventsResponseSchema>>;

export const AnchorViewSchema = Type.Object(
  { seq: Type.Integer(), hash: Type.String(), at: instantSchema },
  { title: "Anchor" },
);
export type AnchorView = Frozen<Static<typeof AnchorViewSchema>>;

export const VerifyResponseSchema = Type.Object({
  ok: Type.Boolean(),
  events: Type.Integer(),
  messages: Type.Integer(),
  first_seq: Type.Integer(),
  last_seq: Type.Integer(),
  head: Type.String(),
  anchor: Type.Optional(AnchorViewSchema),
  /** Of any relay on this store, where this relay's directory has none as new. It proves nothing. */
  newest_anchor: Type.Optional(AnchorViewSchema),
  problem: Type.Optional(Type.String()),
});
export type VerifyResponse = Frozen<Static<typeof VerifyResponseSchema>>;

export const HealthResponseSchema = Type.Object({ status: Type.Literal("ok"), version: Type.String() });
export type HealthResponse = Frozen<Static<typeof HealthResponseSchema>>;

export const ReadyResponseSchema = Type.Object({ status: Type.Literal("ready"), version: Type.String() });
export type ReadyResponse = Frozen<Static<typeof ReadyResponseSchema>>;
