import type {
  AckRequest,
  AckResponse,
  AgentCard,
  AgentsQuery,
  AgentsResponse,
  AgentView,
  BatchRequest,
  BatchResponse,
  CapabilitiesQuery,
  CapabilitiesResponse,
  CapabilityGrantRequest,
  CapabilityRevoked,
  CapabilityUsageResponse,
  CapabilityView,
  DeliveryView,
  EventsQuery,
  EventsResponse,
  FailRequest,
  HealthResponse,
  KeyCreated,
  KeyCreateRequest,
  KeyRotated,
  KeyRotateRequest,
  KeysQuery,
  KeysResponse,
  KeyView,
  LeaseRequest,
  LeaseResponse,
  MailboxRead,
  MailboxResponse,
  MessageInput,
  MessageResponse,
  QueueQuery,
  QueueResponse,
  RegisterRequest,
  RegisterResponse,
  ReleaseRequest,
  ReleaseResponse,
  RenewRequest,
  RenewResponse,
  RepairRequest,
  RepairResponse,
  RetryStaleRequest,
  RetryStaleResponse,
  SendResponse,
  SignedMessage,
  TaskArtifactRequest,
  TaskCancelRequest,
  TaskCompleteRequest,
  TaskFailRequest,
  TasksQuery,
  TasksResponse,
  TaskStatusRequest,
  TaskTreeView,
  TaskView,
  TenantChangeRequest,
  TenantsResponse,
  TenantView,
  ThreadResponse,
  ThreadsQuery,
  ThreadsResponse,
  VerifyResponse,
} from "@a2a-relay/protocol";
import { type A2AClient, createAgentClient } from "../a2a/a2a-client.ts";
import { type CallOptions, HttpExchange, type Path } from "../http/http-exchange.ts";
import { withArtifactId, withIdempotencyKey } from "../http/idempotency.ts";
import { fillClientOptions, type RelayClientOptions } from "../http/relay-client-options.ts";
import { LiveClient } from "./live-client.ts";
import { TaskQueueClient } from "./task-queue-client.ts";

/**
 * The relay's HTTP API, one method for each route. Answers are those of the protocol package; a body with only one
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
    // Each repetition of a registration without an id would make one more agent.
    const repeat = request.agent_id === undefined ? "if_not_done" : "always";
    const call = { method: "POST", path: ["agents", "register"], body: request, repeat } as const;
    return this.#exchange.json(call, "agent", options);
  }

  agents(query: AgentsQuery = {}, options: CallOptions = {}): Promise<AgentsResponse> {
    return this.#get(["agents"], "agents", query, options);
  }

  agent(id: string, options: CallOptions = {}): Promise<AgentView> {
    return this.#get(["agents", id], "agent_id", {}, options);
  }

  /** The agent's A2A card as its callers get it, with the relay's interfaces first. */
  agentCard(id: string, options: CallOptions = {}): Promise<AgentCard> {
    return this.#get(["agents", id, ".well-known", "agent-card.json"], "name", {}, options);
  }

  /** Closes the mailbox; the senders of open messages get a notice. */
  async deregister(id: string, options: CallOptions = {}): Promise<void> {
    const path = ["agents", id];
    await this.#exchange.json({ method: "DELETE", path, repeat: "always" }, "removed", options);
  }

  /** Marks the agent as online for its `ttl_ms`. */
  heartbeat(id: string, options: CallOptions = {}): Promise<AgentView> {
    return this.#post(["agents", id, "heartbeat"], "agent_id", {}, options);
  }

  /**
   * Sends a message. Without a key and an id it gets an idempotency key, by which the relay recognises a repeated
   * request. That does not mean that the *work* may be done twice; for that pass
   * `idempotency: { duplicate_safety: "idempotent", key }`.
   */
  send(message: MessageInput, options: CallOptions = {}): Promise<SendResponse> {
    return this.#post(["messages"], "receipt", withIdempotencyKey(message), options);
  }

  /** Up to 500 messages, answered in order, each with a key as in `send`. */
  sendBatch(request: BatchRequest, options: CallOptions = {}): Promise<BatchResponse> {
    const body = { ...request, messages: request.messages.map(withIdempotencyKey) };
    return this.#post(["messages", "batch"], "results", body, options);
  }

  /**
   * Sends a message that was signed with `signMessage`, without the client's key. Not repeated after a lost reply: the
   * relay would refuse its nonce. The same message signed again has the same id and gets the same receipt.
   */
  inbox(message: SignedMessage, options: CallOptions = {}): Promise<SendResponse> {
    const path = ["api", "a2a", "inbox"];
    const call = { method: "POST", path, body: message, repeat: "if_not_done", isAnonymous: true } as const;
    return this.#exchange.json(call, "receipt", options);
  }

  /** A message, its delivery, and all its receipts. */
  message(id: string, options: CallOptions = {}): Promise<MessageResponse> {
    return this.#get(["messages", id], "message", {}, options);
  }

  /** Open deliveries, oldest first; returned again until acknowledged. `wait_ms` waits for the first. */
  readMailbox(agentId: string, query: MailboxRead = {}, options: CallOptions = {}): Promise<MailboxResponse> {
    return this.#get(["mailbox", agentId], "messages", query, options, query.wait_ms);
  }

  ack(agentId: string, request: AckRequest, options: CallOptions = {}): Promise<AckResponse> {
    return this.#post(["mailbox", agentId, "ack"], "results", request, options);
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
    const path = ["mailbox", agentId, "lease"];
    const waitMs = request.wait_ms;
    return this.#exchange.json(
      { method: "POST", path, body: request, repeat: "if_not_done", waitMs },
      "messages",
      options,
    );
  }

  renew(agentId: string, request: RenewRequest, options: CallOptions = {}): Promise<RenewResponse> {
    return this.#post(["mailbox", agentId, "renew"], "results", request, options);
  }

  /** Gives leased messages back unfinished. */
  release(agentId: string, request: ReleaseRequest, options: CallOptions = {}): Promise<ReleaseResponse> {
    return this.#post(["mailbox", agentId, "release"], "results", request, options);
  }

  /** Makes a message dead and tells its sender the reason. */
  async failMessage(agentId: string, request: FailRequest, options: CallOptions = {}): Promise<DeliveryView> {
    const path = ["mailbox", agentId, "fail"];
    const answer = this.#post<{ readonly delivery: DeliveryView }>(path, "delivery", request, options);
    return (await answer).delivery;
  }

  tasks(query: TasksQuery = {}, options: CallOptions = {}): Promise<TasksResponse> {
    return this.#get(["tasks"], "tasks", query, options);
  }

  async task(id: string, options: CallOptions = {}): Promise<TaskView> {
    const path = ["tasks", id];
    const { task } = await this.#get<{ readonly task: TaskView }>(path, "task", {}, options);
    return task;
  }

  /** The task with all its subtasks. */
  async taskTree(id: string, options: CallOptions = {}): Promise<TaskTreeView> {
    const path = ["tasks", id, "tree"];
    const { tree } = await this.#get<{ readonly tree: TaskTreeView }>(path, "tree", {}, options);
    return tree;
  }

  /** Reports progress, or that the work needs input. */
  reportStatus(id: string, request: TaskStatusRequest, options: CallOptions = {}): Promise<TaskView> {
    // A repeated progress report is harmless, a repeated question is not.
    const repeat = request.state === "working" ? "always" : "if_not_done";
    return this.#changeTask(id, "status", request, options, repeat);
  }

  /** Adds an artifact, or replaces the one with the same id. Without an id it gets one here. */
  addArtifact(id: string, request: TaskArtifactRequest, options: CallOptions = {}): Promise<TaskView> {
    const body = { ...request, artifact: withArtifactId(request.artifact) };
    // Replacing twice is harmless, appending twice is not.
    const repeat = request.append === true ? "if_not_done" : "always";
    return this.#changeTask(id, "artifacts", body, options, repeat);
  }

  /** Finishes the task and its deliveries. The same completion again gets the same answer. */
  completeTask(id: string, request: TaskCompleteRequest = {}, options: CallOptions = {}): Promise<TaskView> {
    const { artifacts, ...rest } = request;
    const body = artifacts === undefined ? rest : { ...rest, artifacts: artifacts.map(withArtifactId) };
    return this.#changeTask(id, "complete", body, options);
  }

  failTask(id: string, request: TaskFailRequest, options: CallOptions = {}): Promise<TaskView> {
    return this.#changeTask(id, "fail", request, options);
  }

  rejectTask(id: string, request: TaskFailRequest, options: CallOptions = {}): Promise<TaskView> {
    return this.#changeTask(id, "reject", request, options);
  }

  cancelTask(id: string, request: TaskCancelRequest = {}, options: CallOptions = {}): Promise<TaskView> {
    return this.#changeTask(id, "cancel", request, options);
  }

  threads(query: ThreadsQuery = {}, options: CallOptions = {}): Promise<ThreadsResponse> {
    return this.#get(["threads"], "threads", query, options);
  }

  thread(id: string, options: CallOptions = {}): Promise<ThreadResponse> {
    return this.#get(["threads", id], "messages", {}, options);
  }

  /** The journal after a cursor. `wait_ms` waits for the first new event. */
  events(query: EventsQuery = {}, options: CallOptions = {}): Promise<EventsResponse> {
    return this.#get(["events"], "events", query, options, query.wait_ms);
  }

  /** Deliveries by state: of one mailbox for its agent, of all mailboxes for operators. */
  queue(query: QueueQuery = {}, options: CallOptions = {}): Promise<QueueResponse> {
    return this.#get(["queue"], "entries", query, options);
  }

  /**
   * Moves a stuck message. Not repeated after a lost reply: another worker may have leased the message meanwhile, and a
   * second requeue would end that lease.
   */
  repair(request: RepairRequest, options: CallOptions = {}): Promise<RepairResponse> {
    const call = { method: "POST", path: ["repair"], body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "action", options);
  }

  /** Requeues stale idempotent work within bounds. Not repeated after a lost reply: it would move more. */
  retryStale(request: RetryStaleRequest = {}, options: CallOptions = {}): Promise<RetryStaleResponse> {
    const path = ["repair", "retry-stale"];
    const call = { method: "POST", path, body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "requeued", options);
  }

  /** Allows an agent one action. Not repeated after a lost reply: that would grant it twice. */
  grantCapability(request: CapabilityGrantRequest, options: CallOptions = {}): Promise<CapabilityView> {
    const path = ["capabilities", "grant"];
    const call = { method: "POST", path, body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "signature_b58", options);
  }

  /** `revoked` is false when it had been revoked before. */
  revokeCapability(id: string, options: CallOptions = {}): Promise<CapabilityRevoked> {
    return this.#post(["capabilities", "revoke"], "revoked", { id }, options);
  }

  capabilities(query: CapabilitiesQuery = {}, options: CallOptions = {}): Promise<CapabilitiesResponse> {
    return this.#get(["capabilities"], "capabilities", query, options);
  }

  /** Capabilities with their remaining uses, and whether the relay would honour them now. */
  capabilityUsage(
    query: CapabilitiesQuery = {},
    options: CallOptions = {},
  ): Promise<CapabilityUsageResponse> {
    return this.#get(["capabilities", "usage"], "grants", query, options);
  }

  /** Walks the whole hash chain; slow on a long journal. */
  verifyJournal(options: CallOptions = {}): Promise<VerifyResponse> {
    const waitMs = VERIFY_MS_MAX;
    const call = { method: "GET", path: ["journal", "verify"], repeat: "always", waitMs } as const;
    return this.#exchange.json(call, "ok", options);
  }

  /** Makes a key; only this answer contains it. Not repeated after a lost reply: it would make another. */
  createKey(request: KeyCreateRequest = {}, options: CallOptions = {}): Promise<KeyCreated> {
    const call = { method: "POST", path: ["keys"], body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "key", options);
  }

  keys(query: KeysQuery = {}, options: CallOptions = {}): Promise<KeysResponse> {
    return this.#get(["keys"], "keys", query, options);
  }

  /** Replaces a key; the old one keeps working for a while. Not repeated after a lost reply. */
  rotateKey(id: string, request: KeyRotateRequest = {}, options: CallOptions = {}): Promise<KeyRotated> {
    const path = ["keys", id, "rotate"];
    const call = { method: "POST", path, body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "key", options);
  }

  /** Not repeated after a lost reply: a revoked key cannot be revoked again. */
  revokeKey(id: string, options: CallOptions = {}): Promise<KeyView> {
    const path = ["keys", id, "revoke"];
    const call = { method: "POST", path, body: {}, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "key_id", options);
  }

  tenants(options: CallOptions = {}): Promise<TenantsResponse> {
    return this.#get(["tenants"], "tenants", {}, options);
  }

  changeTenant(tenant: string, request: TenantChangeRequest, options: CallOptions = {}): Promise<TenantView> {
    return this.#post(["tenants", tenant], "tenant", request, options);
  }

  /** Whether the process is alive. Never repeated. */
  health(options: CallOptions = {}): Promise<HealthResponse> {
    return this.#exchange.json({ method: "GET", path: ["health"], repeat: "never" }, "status", options);
  }

  /** Whether the relay can write; `unavailable` when it cannot. Never repeated. */
  async ready(options: CallOptions = {}): Promise<void> {
    await this.#exchange.json({ method: "GET", path: ["ready"], repeat: "never" }, "status", options);
  }

  /** The relay's metrics in the Prometheus text format. */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.#exchange.text({ method: "GET", path: ["metrics"], repeat: "always" }, options);
  }

  openapi(options: CallOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#get(["openapi.json"], "openapi", {}, options);
  }

  #get<T>(path: Path, member: string, query: object, options: CallOptions, waitMs?: number): Promise<T> {
    return this.#exchange.json({ method: "GET", path, query, repeat: "always", waitMs }, member, options);
  }

  #post<T>(path: Path, member: string, body: object, options: CallOptions): Promise<T> {
    return this.#exchange.json({ method: "POST", path, body, repeat: "always" }, member, options);
  }

  async #changeTask(
    id: string,
    act: string,
    body: object,
    options: CallOptions,
    repeat: "always" | "if_not_done" = "always",
  ): Promise<TaskView> {
    const call = { method: "POST", path: ["tasks", id, act], body, repeat } as const;
    const { task } = await this.#exchange.json<{ readonly task: TaskView }>(call, "task", options);
    return task;
  }
}

const VERIFY_MS_MAX = 10 * 60_000;
