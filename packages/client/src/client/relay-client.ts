import {
  type AckRequest,
  type AckResponse,
  type AgentCard,
  type AgentsQuery,
  type AgentsResponse,
  type AgentView,
  type BatchRequest,
  type BatchResponse,
  type CapabilitiesQuery,
  type CapabilitiesResponse,
  type CapabilityGrantRequest,
  type CapabilityRevoked,
  type CapabilityUsageResponse,
  type CapabilityView,
  type DeliveryView,
  type EventsQuery,
  type EventsResponse,
  type FailRequest,
  type HealthResponse,
  type KeyCreated,
  type KeyCreateRequest,
  type KeyRotated,
  type KeyRotateRequest,
  type KeysQuery,
  type KeysResponse,
  type KeyView,
  type LeaseRequest,
  type LeaseResponse,
  type MailboxRead,
  type MailboxResponse,
  type MessageInput,
  type MessageResponse,
  operations,
  type QueueQuery,
  type QueueResponse,
  type RegisterRequest,
  type RegisterResponse,
  type ReleaseRequest,
  type ReleaseResponse,
  type RenewRequest,
  type RenewResponse,
  type RepairRequest,
  type RepairResponse,
  type RetryStaleRequest,
  type RetryStaleResponse,
  type SendResponse,
  type SignedMessage,
  type TaskArtifactRequest,
  type TaskCancelRequest,
  type TaskCompleteRequest,
  type TaskFailRequest,
  type TasksQuery,
  type TasksResponse,
  type TaskStatusRequest,
  type TaskTreeView,
  type TaskView,
  type TenantChangeRequest,
  type TenantsResponse,
  type TenantView,
  type ThreadResponse,
  type ThreadsQuery,
  type ThreadsResponse,
  type VerifyResponse,
} from "@a2a-relay/protocol";
import { type A2AClient, createAgentClient } from "../a2a/a2a-client.ts";
import { type CallOptions, HttpExchange } from "../http/http-exchange.ts";
import { withArtifactId, withIdempotencyKey } from "../http/idempotency.ts";
import { fillClientOptions, type RelayClientOptions } from "../http/relay-client-options.ts";
import { LiveClient } from "./live-client.ts";
import { TaskQueueClient } from "./task-queue-client.ts";

/**
 * The relay's HTTP API, one method for each operation. Answers are those of the protocol package; a body with only one
 * agent or one task is returned as that agent or task.
 *
 * Every failure is a RelayError with a code of the closed list; only an aborted `signal` rejects with its own reason.
 * The client repeats a failed request where that is safe; see each method.
 */
export class RelayClient extends LiveClient {
  /** The relay's address without a slash at the end. */
  readonly url: string;
  /** The routes below `/a2a/`. */
  readonly taskQueue: TaskQueueClient;
  /** Talks A2A to an agent of this relay, with the same key. */
  readonly a2a: (agentId: string) => A2AClient;
  readonly #exchange: HttpExchange;

  constructor(options: RelayClientOptions) {
    const filled = fillClientOptions(options);
    const exchange = new HttpExchange(filled);
    super(filled, exchange);
    this.url = filled.url;
    this.#exchange = exchange;
    this.taskQueue = new TaskQueueClient(exchange);
    this.a2a = (agentId) => createAgentClient(filled, agentId);
  }

  /**
   * Registers an agent or updates it. Without `agent_id` the relay assigns one. Only the first answer has the agent's
   * `api_key`; if that answer gets lost, an operator has to make another key.
   */
  register(request: RegisterRequest, options: CallOptions = {}): Promise<RegisterResponse> {
    return this.#exchange.call(operations.agents.register, { body: request }, options);
  }

  agents(query: AgentsQuery = {}, options: CallOptions = {}): Promise<AgentsResponse> {
    return this.#exchange.call(operations.agents.list, { query }, options);
  }

  agent(id: string, options: CallOptions = {}): Promise<AgentView> {
    return this.#exchange.call(operations.agents.get, { params: { id } }, options);
  }

  /** The agent's A2A card as its callers get it, with the relay's interfaces first. */
  agentCard(id: string, options: CallOptions = {}): Promise<AgentCard> {
    return this.#exchange.call(operations.agents.card, { params: { id } }, options);
  }

  /** Closes the mailbox; the senders of open messages get a notice. */
  async deregister(id: string, options: CallOptions = {}): Promise<void> {
    await this.#exchange.call(operations.agents.remove, { params: { id } }, options);
  }

  /** Marks the agent as online for its `ttl_ms`. */
  heartbeat(id: string, options: CallOptions = {}): Promise<AgentView> {
    return this.#exchange.call(operations.agents.heartbeat, { params: { id } }, options);
  }

  /**
   * Sends a message. Without a key and an id it gets an idempotency key, by which the relay recognises a repeated
   * request. That does not mean that the *work* may be done twice; for that pass
   * `idempotency: { duplicate_safety: "idempotent", key }`.
   */
  send(message: MessageInput, options: CallOptions = {}): Promise<SendResponse> {
    return this.#exchange.call(operations.messages.send, { body: withIdempotencyKey(message) }, options);
  }

  /** Up to 500 messages, answered in order, each with a key as in `send`. */
  sendBatch(request: BatchRequest, options: CallOptions = {}): Promise<BatchResponse> {
    const body = { ...request, messages: request.messages.map(withIdempotencyKey) };
    return this.#exchange.call(operations.messages.sendBatch, { body }, options);
  }

  /**
   * Sends a message that was signed with `signMessage`, without the client's key. Not repeated after a lost reply: the
   * relay would refuse its nonce. The same message signed again has the same id and gets the same receipt.
   */
  inbox(message: SignedMessage, options: CallOptions = {}): Promise<SendResponse> {
    return this.#exchange.call(operations.messages.sendSigned, { body: message }, options);
  }

  /** A message, its delivery, and all its receipts. */
  message(id: string, options: CallOptions = {}): Promise<MessageResponse> {
    return this.#exchange.call(operations.messages.get, { params: { id } }, options);
  }

  /** Open deliveries, oldest first; returned again until acknowledged. `wait_ms` waits for the first. */
  readMailbox(agentId: string, query: MailboxRead = {}, options: CallOptions = {}): Promise<MailboxResponse> {
    const params = { agent_id: agentId };
    return this.#exchange.call(operations.mailboxes.read, { params, query }, options);
  }

  ack(agentId: string, request: AckRequest, options: CallOptions = {}): Promise<AckResponse> {
    const params = { agent_id: agentId };
    return this.#exchange.call(operations.mailboxes.acknowledge, { params, body: request }, options);
  }

  /**
   * Leases messages, so that no other worker gets them.
   *
   * Not repeated after a lost reply: the relay may have leased messages to this worker already, and a second request
   * would leave them under a lease that no worker knows. The queue lists them by `worker`, so that they can be
   * released, as RelayAgent does. When the relay was not reached, or said that it did nothing, the request is
   * repeated.
   */
  lease(agentId: string, request: LeaseRequest = {}, options: CallOptions = {}): Promise<LeaseResponse> {
    const params = { agent_id: agentId };
    return this.#exchange.call(operations.mailboxes.lease, { params, body: request }, options);
  }

  renew(agentId: string, request: RenewRequest, options: CallOptions = {}): Promise<RenewResponse> {
    const params = { agent_id: agentId };
    return this.#exchange.call(operations.mailboxes.renew, { params, body: request }, options);
  }

  /** Gives leased messages back unfinished. */
  release(agentId: string, request: ReleaseRequest, options: CallOptions = {}): Promise<ReleaseResponse> {
    const params = { agent_id: agentId };
    return this.#exchange.call(operations.mailboxes.release, { params, body: request }, options);
  }

  /** Makes a message dead and tells its sender the reason. */
  async failMessage(agentId: string, request: FailRequest, options: CallOptions = {}): Promise<DeliveryView> {
    const asked = { params: { agent_id: agentId }, body: request };
    return (await this.#exchange.call(operations.mailboxes.fail, asked, options)).delivery;
  }

  tasks(query: TasksQuery = {}, options: CallOptions = {}): Promise<TasksResponse> {
    return this.#exchange.call(operations.tasks.list, { query }, options);
  }

  async task(id: string, options: CallOptions = {}): Promise<TaskView> {
    return (await this.#exchange.call(operations.tasks.get, { params: { id } }, options)).task;
  }

  /** The task with all its subtasks. */
  async taskTree(id: string, options: CallOptions = {}): Promise<TaskTreeView> {
    return (await this.#exchange.call(operations.tasks.tree, { params: { id } }, options)).tree;
  }

  /** Reports progress, or that the work needs input. */
  async reportStatus(id: string, request: TaskStatusRequest, options: CallOptions = {}): Promise<TaskView> {
    const asked = { params: { id }, body: request };
    return (await this.#exchange.call(operations.tasks.reportStatus, asked, options)).task;
  }

  /** Adds an artifact, or replaces the one with the same id. Without an id it gets one here. */
  async addArtifact(id: string, request: TaskArtifactRequest, options: CallOptions = {}): Promise<TaskView> {
    const body = { ...request, artifact: withArtifactId(request.artifact) };
    return (await this.#exchange.call(operations.tasks.addArtifact, { params: { id }, body }, options)).task;
  }

  /** Finishes the task and its deliveries. The same completion again gets the same answer. */
  async completeTask(
    id: string,
    request: TaskCompleteRequest = {},
    options: CallOptions = {},
  ): Promise<TaskView> {
    const { artifacts, ...rest } = request;
    const body = artifacts === undefined ? rest : { ...rest, artifacts: artifacts.map(withArtifactId) };
    return (await this.#exchange.call(operations.tasks.complete, { params: { id }, body }, options)).task;
  }

  async failTask(id: string, request: TaskFailRequest, options: CallOptions = {}): Promise<TaskView> {
    const asked = { params: { id }, body: request };
    return (await this.#exchange.call(operations.tasks.fail, asked, options)).task;
  }

  async rejectTask(id: string, request: TaskFailRequest, options: CallOptions = {}): Promise<TaskView> {
    const asked = { params: { id }, body: request };
    return (await this.#exchange.call(operations.tasks.reject, asked, options)).task;
  }

  async cancelTask(
    id: string,
    request: TaskCancelRequest = {},
    options: CallOptions = {},
  ): Promise<TaskView> {
    const asked = { params: { id }, body: request };
    return (await this.#exchange.call(operations.tasks.cancel, asked, options)).task;
  }

  threads(query: ThreadsQuery = {}, options: CallOptions = {}): Promise<ThreadsResponse> {
    return this.#exchange.call(operations.threads.list, { query }, options);
  }

  thread(id: string, options: CallOptions = {}): Promise<ThreadResponse> {
    return this.#exchange.call(operations.threads.get, { params: { id } }, options);
  }

  /** The journal after a cursor. `wait_ms` waits for the first new event. */
  events(query: EventsQuery = {}, options: CallOptions = {}): Promise<EventsResponse> {
    return this.#exchange.call(operations.journal.events, { query }, options);
  }

  /** Deliveries by state: of one mailbox for its agent, of all mailboxes for operators. */
  queue(query: QueueQuery = {}, options: CallOptions = {}): Promise<QueueResponse> {
    return this.#exchange.call(operations.repairs.queue, { query }, options);
  }

  /**
   * Moves a stuck message. Not repeated after a lost reply: another worker may have leased the message meanwhile, and a
   * second requeue would end that lease.
   */
  repair(request: RepairRequest, options: CallOptions = {}): Promise<RepairResponse> {
    return this.#exchange.call(operations.repairs.repair, { body: request }, options);
  }

  /** Requeues stale idempotent work within bounds. Not repeated after a lost reply: it would move more. */
  retryStale(request: RetryStaleRequest = {}, options: CallOptions = {}): Promise<RetryStaleResponse> {
    return this.#exchange.call(operations.repairs.retryStale, { body: request }, options);
  }

  /** Allows an agent one action. Not repeated after a lost reply: that would grant it twice. */
  grantCapability(request: CapabilityGrantRequest, options: CallOptions = {}): Promise<CapabilityView> {
    return this.#exchange.call(operations.capabilities.grant, { body: request }, options);
  }

  /** `revoked` is false when it had been revoked before. */
  revokeCapability(id: string, options: CallOptions = {}): Promise<CapabilityRevoked> {
    return this.#exchange.call(operations.capabilities.revoke, { body: { id } }, options);
  }

  capabilities(query: CapabilitiesQuery = {}, options: CallOptions = {}): Promise<CapabilitiesResponse> {
    return this.#exchange.call(operations.capabilities.list, { query }, options);
  }

  /** Capabilities with their remaining uses, and whether the relay would honour them now. */
  capabilityUsage(
    query: CapabilitiesQuery = {},
    options: CallOptions = {},
  ): Promise<CapabilityUsageResponse> {
    return this.#exchange.call(operations.capabilities.usage, { query }, options);
  }

  /** Walks the whole hash chain; slow on a long journal. */
  verifyJournal(options: CallOptions = {}): Promise<VerifyResponse> {
    return this.#exchange.call(operations.journal.verify, {}, options);
  }

  /** Makes a key; only this answer contains it. Not repeated after a lost reply: it would make another. */
  createKey(request: KeyCreateRequest = {}, options: CallOptions = {}): Promise<KeyCreated> {
    return this.#exchange.call(operations.keys.create, { body: request }, options);
  }

  keys(query: KeysQuery = {}, options: CallOptions = {}): Promise<KeysResponse> {
    return this.#exchange.call(operations.keys.list, { query }, options);
  }

  /** Replaces a key; the old one keeps working for a while. Not repeated after a lost reply. */
  rotateKey(id: string, request: KeyRotateRequest = {}, options: CallOptions = {}): Promise<KeyRotated> {
    return this.#exchange.call(operations.keys.rotate, { params: { id }, body: request }, options);
  }

  /** Not repeated after a lost reply: a revoked key cannot be revoked again. */
  revokeKey(id: string, options: CallOptions = {}): Promise<KeyView> {
    return this.#exchange.call(operations.keys.revoke, { params: { id } }, options);
  }

  tenants(options: CallOptions = {}): Promise<TenantsResponse> {
    return this.#exchange.call(operations.tenants.list, {}, options);
  }

  changeTenant(tenant: string, request: TenantChangeRequest, options: CallOptions = {}): Promise<TenantView> {
    return this.#exchange.call(operations.tenants.change, { params: { tenant }, body: request }, options);
  }

  /** Whether the process is alive. Never repeated. */
  health(options: CallOptions = {}): Promise<HealthResponse> {
    return this.#exchange.call(operations.service.health, {}, options);
  }

  /** Whether the relay can write; `unavailable` when it cannot. Never repeated. */
  async ready(options: CallOptions = {}): Promise<void> {
    await this.#exchange.call(operations.service.ready, {}, options);
  }

  /** The relay's metrics in the Prometheus text format. */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.#exchange.call(operations.service.metrics, {}, options);
  }

  openapi(options: CallOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#exchange.call(operations.service.openapi, {}, options);
  }
}
