import {
  type AckRequest,
  AckRequestSchema,
  type AckResponse,
  type AgentId,
  FailRequestSchema,
  type FailResponse,
  isTerminal,
  type ItemResult,
  type LeaseRef,
  LeaseRequestSchema,
  type LeaseResponse,
  LIMITS,
  MailboxReadSchema,
  type MailboxResponse,
  type MailboxStreamQuery,
  MailboxStreamQuerySchema,
  RelayError,
  type ReleaseRequest,
  ReleaseRequestSchema,
  type ReleaseResponse,
  RenewRequestSchema,
  type RenewResponse,
  type Verb,
} from "@a2a-relay/protocol";
import type { RespondDemand } from "../access/capability-demand.ts";
import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import { mailboxTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import { parseCursor } from "../mechanisms/cursor.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import type { Throttle } from "../mechanisms/throttle.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import { isGone, type WaitOptions } from "../mechanisms/wait-options.ts";
import { DeliveryChanges, failedItem, markDelivered, resultsOf, unreadIn } from "./delivery-changes.ts";
import type { DeliveryPurpose, DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import { acknowledge, assertMayFinish, fail, release } from "../rules/delivery-state.ts";
import { viewDelivery, viewLease, viewMailboxItem } from "./delivery-view.ts";
import { followMailbox, type MailboxPage } from "./mailbox-stream.ts";
import { undeliveredChanges } from "../rules/undelivered.ts";

const parseRead = parserOf(MailboxReadSchema, "query");
const parseStream = parserOf(MailboxStreamQuerySchema, "query");
const parseLease = parserOf(LeaseRequestSchema, "lease");
const parseAck = parserOf(AckRequestSchema, "ack");
const parseRenew = parserOf(RenewRequestSchema, "renew");
const parseRelease = parserOf(ReleaseRequestSchema, "release");
const parseFail = parserOf(FailRequestSchema, "fail");

/** Which messages another wire asks for, and how long the caller waits for them. */
export interface PurposeQuery {
  readonly purpose: DeliveryPurpose;
  readonly waitMs: number;
}

export interface PurposeLease extends PurposeQuery {
  readonly worker: string | null;
  /** Null: until an act ends it. */
  readonly leaseMs: number | null;
}

/** How a wire with bounded buffers leases. */
export interface LeaseOptions extends WaitOptions {
  /** Of messages as JSON; always at least one message. */
  readonly bytesMax?: number;
  /** Runs the lease once the wire has room for its messages. */
  whenRoom?(take: () => Promise<readonly MailboxMessage[]>): Promise<readonly MailboxMessage[]>;
}

export interface MailboxSettings {
  readonly messageTtlMs: number;
  /** How often an idle stream gets a heartbeat. */
  readonly heartbeatMs: number;
}

export interface MailboxParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly gate: CapabilityGate;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly ids: Identifiers;
  /** By the agent whose counted capability is spent. */
  readonly capabilityMutex: KeyedMutex;
  readonly waitQuota: WaitQuota;
  /** Of readers that catch up on much. */
  readonly throttle: Throttle;
}

/** Receiving: read + ack for one reader, lease + ack for several workers. Both are at-least-once. */
export class MailboxService {
  readonly #parts: MailboxParts;
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #gate: CapabilityGate;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #capabilityMutex: KeyedMutex;
  readonly #waitQuota: WaitQuota;
  readonly #changes: DeliveryChanges;
  readonly #settings: MailboxSettings;

  constructor(parts: MailboxParts, settings: MailboxSettings) {
    this.#parts = parts;
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#gate = parts.gate;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#capabilityMutex = parts.capabilityMutex;
    this.#waitQuota = parts.waitQuota;
    this.#changes = new DeliveryChanges(parts);
    this.#settings = settings;
  }

  /** Available messages, oldest first, returned again until they are acknowledged. Reading only leaves a mark. */
  async read(
    principal: Principal,
    agent: string,
    input: unknown,
    waiting: WaitOptions = {},
  ): Promise<MailboxResponse> {
    const query = parseRead(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.read");
    const { tenant } = principal;
    const afterPosition = parseCursor(query.since, "since");
    const limit = query.limit ?? LIMITS.readLimitDefault;
    const page = { tenant, agentId, afterPosition, limit, bytesMax: LIMITS.answerBytesMax };
    const poll = (): Promise<readonly MailboxMessage[]> =>
      this.#store.deliveries.available({ ...page, nowMs: this.#clock.nowMs() });
    const messages = await this.#waitFor(principal, agentId, query.wait_ms ?? 0, waiting, poll);
    if (query.peek !== true && !isGone(waiting)) {
      await markDelivered(this.#parts, tenant, agentId, unreadIn(messages));
    }
    const cursor = messages.at(-1)?.delivery.position ?? afterPosition;
    return { messages: messages.map(viewMailboxItem), cursor: String(cursor) };
  }

  /** Open messages and new ones, page by page, until the caller disconnects. Refuses before the first page. */
  async follow(
    principal: Principal,
    agent: string,
    input: unknown,
    waiting: WaitOptions = {},
  ): Promise<AsyncIterable<MailboxPage>> {
    const query: MailboxStreamQuery = parseStream(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.read");
    return followMailbox(this.#parts, this.#settings, { principal, agentId, query }, waiting);
  }

  /** For a reader that asks for no messages yet. */
  async authorizeReader(principal: Principal, agent: string): Promise<void> {
    await this.#mailboxOf(principal, agent, "mailbox.read");
  }

  async lease(
    principal: Principal,
    agent: string,
    input: unknown,
    taking: LeaseOptions = {},
  ): Promise<LeaseResponse> {
    const request = parseLease(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const wanted = {
      purpose: undefined,
      worker: request.worker ?? null,
      leaseMs: request.lease_ms ?? null,
      waitMs: request.wait_ms ?? 0,
    };
    const leased = await this.#lease(principal, agentId, request.max ?? 1, wanted, taking);
    return { messages: leased.map(viewMailboxItem) as LeaseResponse["messages"] };
  }

  /** Leases the oldest message of one purpose; the rest of the mailbox stays as it is. */
  async take(
    principal: Principal,
    agent: string,
    wanted: PurposeLease,
    waiting: WaitOptions = {},
  ): Promise<MailboxMessage | undefined> {
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const [leased] = await this.#lease(principal, agentId, 1, wanted, waiting);
    return isGone(waiting) ? undefined : leased;
  }

  /** The oldest available message of one purpose, without touching it. */
  async oldest(
    principal: Principal,
    agent: string,
    wanted: PurposeQuery,
    waiting: WaitOptions = {},
  ): Promise<MailboxMessage | undefined> {
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.read");
    const { tenant } = principal;
    const { purpose, waitMs } = wanted;
    const page = { tenant, agentId, purpose, afterPosition: 0, limit: 1, bytesMax: LIMITS.answerBytesMax };
    const [message] = await this.#waitFor(principal, agentId, waitMs, waiting, () =>
      this.#store.deliveries.available({ ...page, nowMs: this.#clock.nowMs() }),
    );
    return message;
  }

  /** One bad id does not fail the rest. Acknowledging twice is harmless and counted once. */
  async ack(principal: Principal, agent: string, input: unknown): Promise<AckResponse> {
    const request: AckRequest = parseAck(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    if (request.message_ids === undefined && request.leases === undefined) {
      throw new RelayError("invalid_argument", "ack: give message_ids or leases");
    }
    const ids = (request.message_ids ?? []).map((message_id) => ({ message_id, lease_id: undefined }));
    const acts = [...ids, ...(request.leases ?? [])].map(({ message_id: messageId, lease_id }) => ({
      messageId,
      rule: (delivery: DeliveryRecord, nowMs: number) => acknowledge(delivery, lease_id, nowMs),
    }));
    const outcomes = await this.#changes.changeAll(principal.tenant, agentId, acts);
    const acknowledged = outcomes.filter(
      (each) => each !== undefined && !(each instanceof RelayError),
    ).length;
    return { acknowledged, results: resultsOf(acts, outcomes) };
  }

  async release(principal: Principal, agent: string, input: unknown): Promise<ReleaseResponse> {
    const request = parseRelease(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const acts = leasesOf(request).map(({ message_id: messageId, lease_id }) => ({
      messageId,
      rule: (delivery: DeliveryRecord) => release(delivery, lease_id),
    }));
    const results = resultsOf(acts, await this.#changes.changeAll(principal.tenant, agentId, acts));
    return { released: results.filter((result) => result.ok).length, results };
  }

  /** Extends leases; a renewal is not journaled. */
  async renew(principal: Principal, agent: string, input: unknown): Promise<RenewResponse> {
    const request = parseRenew(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const leases = leasesOf(request);
    const renewed = await this.#store.deliveries.renew(
      principal.tenant,
      agentId,
      leases.map((ref) => ({ messageId: ref.message_id, leaseId: ref.lease_id })),
      this.#clock.nowMs() + request.lease_ms,
    );
    const results = await Promise.all(
      leases.map(async (item): Promise<ItemResult> => {
        const delivery = renewed.get(item.message_id);
        const lease = delivery?.leaseId === item.lease_id ? viewLease(delivery) : undefined;
        if (lease !== undefined) return { message_id: item.message_id, ok: true, lease };
        return failedItem(item.message_id, await this.#whyLost(principal.tenant, agentId, item));
      }),
    );
    return { renewed: renewed.size, results };
  }

  /** The message cannot be done: it is dead, and its sender is told why. */
  async fail(principal: Principal, agent: string, input: unknown): Promise<FailResponse> {
    const request = parseFail(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const { tenant } = principal;
    const decide = async (): Promise<Decision<FailResponse>> => {
      const nowMs = this.#clock.nowMs();
      const defaults = { ids: this.#ids, nowMs, messageTtlMs: this.#settings.messageTtlMs };
      const delivery = await this.#changes.deliveryIn(tenant, agentId, request.message_id);
      const demand = await demandOfGivingUp(this.#store, delivery, request.lease_id);
      const pass = demand === undefined ? {} : await this.#gate.pass(principal, demand);
      const dead = fail(delivery, request.lease_id, request.reason, nowMs);
      const by = { actor: agentId, resultFrom: agentId };
      const changes = await undeliveredChanges(this.#store, defaults, dead, by);
      return { changes: combine(tenant, [pass, ...changes]), answer: { delivery: viewDelivery(dead) } };
    };
    return decideAndCommit(this.#store, decide, this.#capabilityMutex.at(tenant, agentId));
  }

  async #mailboxOf(principal: Principal, agent: string, verb: Verb): Promise<AgentId> {
    const agentId = await this.#directory.resolve(principal.tenant, agent, "agent_id");
    await this.#guard.authorize(principal, verb, { agentId });
    return agentId;
  }

  async #lease(
    principal: Principal,
    agentId: AgentId,
    max: number,
    wanted: Omit<PurposeLease, "purpose"> & { readonly purpose: DeliveryPurpose | undefined },
    taking: LeaseOptions,
  ): Promise<readonly MailboxMessage[]> {
    const { tenant } = principal;
    const { bytesMax = LIMITS.answerBytesMax } = taking;
    const { purpose, worker, leaseMs, waitMs } = wanted;
    const take = async (): Promise<readonly MailboxMessage[]> => {
      const nowMs = this.#clock.nowMs();
      const outcome = await this.#store.deliveries.lease({
        tenant,
        agentId,
        worker,
        purpose,
        leaseIds: Array.from({ length: max }, () => this.#ids.lease()),
        bytesMax,
        nowMs,
        leaseExpiresAtMs: leaseMs === null ? null : nowMs + leaseMs,
      });
      return outcome.committed ? outcome.messages : [];
    };
    const poll = (): Promise<readonly MailboxMessage[]> => taking.whenRoom?.(take) ?? take();
    const leased = await this.#waitFor(principal, agentId, waitMs, taking, poll);
    if (isGone(taking)) await this.#giveBack(principal, agentId, leased);
    await this.#store.agents.touch(tenant, agentId, this.#clock.nowMs());
    return leased;
  }

  /** Polls at once, then after every change of the mailbox, until there is a message or the time is over. */
  async #waitFor(
    principal: Principal,
    agentId: AgentId,
    waitMs: number,
    waiting: WaitOptions,
    poll: () => Promise<readonly MailboxMessage[]>,
  ): Promise<readonly MailboxMessage[]> {
    // A caller that left while it was authorised takes nothing.
    const pollForCaller = async (): Promise<readonly MailboxMessage[]> => (isGone(waiting) ? [] : poll());
    if (waitMs === 0) return pollForCaller();
    const { signal } = waiting;
    using watch = this.#waitQuota.watch(principal, mailboxTopic(principal.tenant, agentId));
    const endMs = this.#clock.nowMs() + waitMs;
    for (;;) {
      const messages = await pollForCaller();
      const leftMs = endMs - this.#clock.nowMs();
      if (messages.length > 0 || leftMs <= 0 || signal?.aborted === true) return messages;
      if (!(await watch.changed({ timeoutMs: leftMs, signal }))) return messages;
      await this.#guard.assertStillValid(principal);
    }
  }

  /** A worker that disconnected while its lease was committed would never know of the lease. */
  async #giveBack({ tenant }: Principal, agentId: AgentId, leased: readonly MailboxMessage[]): Promise<void> {
    await Promise.all(
      leased.map(({ delivery: { messageId, leaseId } }) => {
        const rule = (delivery: DeliveryRecord): DeliveryRecord => release(delivery, leaseId ?? "");
        return this.#changes.change(tenant, agentId, { messageId, rule });
      }),
    );
  }

  async #whyLost(tenant: string, agentId: AgentId, ref: LeaseRef): Promise<RelayError> {
    try {
      const delivery = await this.#changes.deliveryIn(tenant, agentId, ref.message_id);
      assertMayFinish(delivery, ref.lease_id);
      return new RelayError("lease_lost", `message ${ref.message_id} is ${delivery.state}, no longer leased`);
    } catch (reason) {
      return RelayError.from(reason);
    }
  }
}

function leasesOf(request: ReleaseRequest): readonly LeaseRef[] {
  const { leases, message_id, lease_id } = request;
  if (leases !== undefined && message_id === undefined && lease_id === undefined) return leases;
  if (leases === undefined && message_id !== undefined && lease_id !== undefined) {
    return [{ message_id, lease_id }];
  }
  throw new RelayError(
    "invalid_argument",
    "leases: give a list of {message_id, lease_id}, or the two for one",
  );
}

/** Giving up the message that asked for a task answers that task; undefined for any other message. */
async function demandOfGivingUp(
  store: RelayStore,
  { tenant, messageId, taskId, agentId: responder }: DeliveryRecord,
  leaseId: string | undefined,
): Promise<RespondDemand | undefined> {
  const task = taskId === null ? undefined : (await store.tasks.get(tenant, [taskId]))[0];
  if (task === undefined || task.messageId !== messageId || isTerminal(task.state)) return undefined;
  const { id, requester, clientId: clientTaskId } = task;
  return { kind: "respond", responder, requester, taskId: id, clientTaskId, leaseId };
}
