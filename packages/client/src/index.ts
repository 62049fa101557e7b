export { RelayClient } from "./relay-client.ts";
export type { Fetch, RelayClientOptions } from "./relay-client-options.ts";
export type { CallOptions } from "./http-exchange.ts";
export { createIdempotencyKey } from "./idempotency-key.ts";

export { type AgentRequest, RelayAgent } from "./relay-agent.ts";
export type { RelayAgentOptions } from "./relay-agent-options.ts";
export type { MessageHandler, TaskHandler } from "./mail-worker.ts";
export type { AgentTask, TaskReply, TaskReplyParts } from "./agent-task.ts";
export type { AgentMessage } from "./agent-message.ts";
export type { ResultOptions, TaskOutcome, TaskRequest } from "./task-request.ts";
export type { AgentActivity, OnAgentError } from "./background-errors.ts";

// What users of the SDK meet in its arguments and answers, so that they need one import.
export { isTerminal, LIMITS, POSTMASTER, RelayError } from "@a2a-relay/protocol";
export type {
  AckRequest,
  AckResponse,
  AgentCard,
  AgentsQuery,
  AgentsResponse,
  AgentView,
  Artifact,
  ArtifactInput,
  BatchItem,
  BatchRequest,
  BatchResponse,
  DeliveryState,
  DeliveryView,
  EventsQuery,
  EventsResponse,
  EventView,
  FailRequest,
  HealthResponse,
  ItemResult,
  LeaseRef,
  LeaseRequest,
  LeaseResponse,
  LeaseView,
  MailboxItem,
  MailboxRead,
  MailboxResponse,
  Message,
  MessageInput,
  MessageKind,
  MessageResponse,
  Part,
  QueueEntry,
  QueueQuery,
  QueueResponse,
  Receipt,
  ReceiptStep,
  RegisterRequest,
  RegisterResponse,
  RelayErrorCode,
  ReleaseRequest,
  ReleaseResponse,
  RenewRequest,
  RenewResponse,
  RepairRequest,
  RepairResponse,
  RetryStaleRequest,
  RetryStaleResponse,
  SendResponse,
  Skill,
  TaskArtifactRequest,
  TaskCancelRequest,
  TaskCompleteRequest,
  TaskFailRequest,
  TasksQuery,
  TasksResponse,
  TaskState,
  TaskStatusRequest,
  TaskSummary,
  TaskTreeView,
  TaskView,
  ThreadResponse,
  ThreadsQuery,
  ThreadsResponse,
  ThreadView,
  VerifyResponse,
} from "@a2a-relay/protocol";
