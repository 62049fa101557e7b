/*
 * The SDK. Each folder may import those below it:
 *
 * executor/   serves an `AgentExecutor` of the A2A SDK as a RelayAgent; the entry `@a2a-relay/client/a2a-executor`
 * agent/      RelayAgent: leases messages, runs handlers, renews leases, settles outcomes; start at relay-agent.ts
 * client/     RelayClient: one method for each operation; start at relay-client.ts
 * a2a/        A2AClient: calls any A2A agent; start at a2a-client.ts
 * live/       streams and sockets that reconnect and resume
 * signing/    signed messages, webhooks and key proofs
 * http/       requests, retries, server-sent events, options
 */

export { RelayClient } from "./client/relay-client.ts";
export type { Fetch, RelayClientOptions } from "./http/relay-client-options.ts";
export type { CallOptions } from "./http/http-exchange.ts";
export type {
  EventsStreamQuery,
  StreamedEvent,
  StreamedItem,
  StreamedNotice,
  StreamedTaskEvent,
} from "./client/live-client.ts";
export type { FollowOptions } from "./live/resumed-stream.ts";
export type { InboxFrame } from "./live/inbox-frames.ts";
export type { WebSocketConstructor, WebSocketEvent, WebSocketLike } from "./http/relay-client-options.ts";
export type { SocketChannel, SocketOptions } from "./live/socket-channel.ts";
export { TransportBlocked } from "./http/http-answer.ts";
export type { TaskQueueClient } from "./client/task-queue-client.ts";
export { createIdempotencyKey } from "./http/idempotency.ts";
export { type KeyProofOptions, type MessageSigning, proveKey, signMessage } from "./signing/sign.ts";
export { verifyWebhook, type WebhookVerification } from "./signing/verify-webhook.ts";

export { type AgentRequest, RelayAgent } from "./agent/relay-agent.ts";
export type { InboxTransportChoice, RelayAgentOptions } from "./agent/relay-agent-options.ts";
export type { MessageHandler, TaskHandler } from "./agent/message-worker.ts";
export type { AddArtifactOptions, AgentTask, TaskReply, TaskReplyParts } from "./agent/agent-task.ts";
export type { ArtifactPiece, ArtifactPieces } from "./agent/artifact-batches.ts";
export type { AskedOverA2a, Said, SaidParts } from "./agent/task-content.ts";
export type { AgentMessage } from "./agent/agent-message.ts";
export type { ResultOptions, TaskOutcome, TaskRequest } from "./agent/task-request.ts";
export type { AgentActivity, OnAgentError } from "./agent/background-errors.ts";

export { A2AClient } from "./a2a/a2a-client.ts";
export type { A2AClientOptions } from "./a2a/a2a-client-options.ts";
export type {
  A2aCardOptions,
  A2aGetTaskOptions,
  A2aMessageInput,
  A2aPushConfigInput,
  A2aSendOptions,
  A2aSubscribeOptions,
  A2aTasksQuery,
} from "./a2a/a2a-requests.ts";
export type { A2aStreamEvent } from "./a2a/stream-event.ts";
export { isSettledState, isTerminalState } from "./a2a/stream-event.ts";
export { type A2aSpoken, textOf } from "./a2a/text-of.ts";

// Types of the SDK's arguments and answers, so that users need one import.
export { A2aError, isTerminal, LIMITS, POSTMASTER, RelayError } from "@a2a-relay/protocol";
export type {
  A2aArtifactUpdate,
  A2aBindingName,
  A2aErrorName,
  A2aMessage,
  A2aPushConfig,
  A2aSendResult,
  A2aState,
  A2aStatus,
  A2aStatusUpdate,
  A2aStreamResponse,
  A2aTask,
  A2aTaskList,
  A2aVersion,
  QueueAutoRetried,
  QueueCompacted,
  QueueSnapshot,
  QueueRepaired,
  QueueRepairOutcome,
  QueueRepairRequest,
  QueueResultAcked,
  QueueResultOption,
  QueueResultAccepted,
  QueueResults,
  QueueRetryReport,
  QueueTask,
  QueueTaskInput,
  QueueTaskOption,
  QueueTaskAccepted,
  QueueTaskEntry,
  QueueTaskResult,
  QueueTaskResultInput,
  QueueTasks,
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
  CapabilitiesQuery,
  CapabilitiesResponse,
  CapabilityGrantRequest,
  CapabilityRevoked,
  CapabilityScope,
  CapabilityUsage,
  CapabilityUsageResponse,
  CapabilityView,
  DeliveryState,
  DeliveryView,
  EventsQuery,
  EventsResponse,
  EventView,
  FailRequest,
  HealthResponse,
  ItemResult,
  KeyCreated,
  KeyCreateRequest,
  KeyProof,
  KeyRotated,
  KeyRotateRequest,
  KeysQuery,
  KeysResponse,
  KeyView,
  LeaseRef,
  LeaseRequest,
  LeaseResponse,
  LeaseView,
  MailboxItem,
  MailboxRead,
  MailboxResponse,
  MailboxNotice,
  MailboxSocketQuery,
  MailboxStreamQuery,
  Message,
  MessageInput,
  MessageKind,
  MessageResponse,
  Part,
  PushEndpointView,
  PushPayload,
  PushQuery,
  PushReplayed,
  PushReplayRequest,
  PushRotated,
  PushRotateRequest,
  QueueAgent,
  QueueContent,
  QueueEntry,
  QueueLease,
  QueueNext,
  QueueQuery,
  QueueRecent,
  QueueResponse,
  QueueState,
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
  ResultAck,
  ResultNext,
  RetryStaleRequest,
  RetryStaleResponse,
  SendResponse,
  SignedMessage,
  Skill,
  TaskArtifactRequest,
  TaskCancelRequest,
  TaskCompleteRequest,
  TaskEventsQuery,
  TaskEventView,
  TaskFailRequest,
  TaskQueueQuery,
  TasksQuery,
  TasksResponse,
  TaskState,
  TaskStatusRequest,
  TaskSummary,
  TaskTreeView,
  TaskView,
  TenantChangeRequest,
  TenantsResponse,
  TenantView,
  ThreadResponse,
  ThreadsQuery,
  ThreadsResponse,
  ThreadView,
  VerifyResponse,
} from "@a2a-relay/protocol";
