import {
  type AckRequest,
  AckRequestSchema,
  type AckResponse,
  type AgentId,
  FailRequestSchema,
  type ItemResult,
  type LeaseRef,
  type LeaseRequest,
  LeaseRequestSchema,
  type LeaseResponse,
  LIMITS,
  type MailboxItem,
  type MailboxRead,
  MailboxReadSchema,
  type MailboxResponse,
  type MessageResponse,
  RelayError,
  type ReleaseRequest,
  ReleaseRequestSchema,
  type ReleaseResponse,
  RenewRequestSchema,
  type RenewResponse,
} from "@a2a-relay/protocol";
import type { Verb } from "../access/authorize.ts";
import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import { mailboxTopic } from "../environment/change-feed.ts";
import type { Clock } from "../environment/clock.ts";
import { combine, type Decision, decideAndCommit } from "../environment/commit-retry.ts";
import { parseCursor } from "../environment/cursor.ts";
import type { Identifiers } from "../environment/identifiers.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import { parserOf } from "../environment/schema-check.ts";
import type { ServiceParts } from "../environment/service-parts.ts";
import type { Turns } from "../environment/turns.ts";
import { isGone, type Waiting } from "../environment/waiting.ts";
import type { EventDraft } from "../journal/event.ts";
import { deliveryEvent, freeReservations } from "../tasks/task-changes.ts";
import type { DeliveryRecord, MailPurpose } from "./delivery-record.ts";
import { acknowledge, assertMayFinish, fail, release } from "./delivery-state.ts";
import { viewDelivery, viewLease, viewMail } from "./delivery-view.ts";
import type { Mail } from "./mailbox-store.ts";
import { demandOfGivingUp, undeliveredChanges } from "./undelivered.ts";

const parseRead = parserOf(MailboxReadSchema, "query");
const parseLease = parserOf(LeaseRequestSchema, "lease");
const parseAck = parserOf(AckRequestSchema, "ack");
const parseRenew = parserOf(RenewRequestSchema, "renew");
const parseRelease = parserOf(ReleaseRequestSchema, "release");
const parseFail = parserOf(FailRequestSchema, "fail");

/** Which mail another wire asks for, and how long the caller waits for it. */
export interface Wanted {
  readonly purpose: MailPurpose;
  readonly waitMs: number;
}

export interface WantedLease extends Wanted {
  readonly worker: string | null;
  /** Null: until somebody acts on it. */
  readonly leaseMs: number | null;
}

/** Taking mail, the two ways there are: read + ack, and lease + ack. Both are at-least-once. */
export class MailboxService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #gate: CapabilityGate;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #spenders: Turns;
  readonly #messageTtlMs: number;

  constructor(parts: ServiceParts, settings: { readonly messageTtlMs: number }) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#gate = parts.gate;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#spenders = parts.spenders;
    this.#messageTtlMs = settings.messageTtlMs;
  }

  /** Available mail, oldest first, again and again until it is acknowledged. Reading only leaves a mark. */
  async read(
    principal: Principal,
    agent: string,
    input: unknown,
    waiting: Waiting = {},
  ): Promise<MailboxResponse> {
    const query = parseRead(input) as MailboxRead;
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.read");
    const { tenant } = principal;
    const afterPosition = parseCursor(query.since, "since");
    const limit = query.limit ?? LIMITS.readLimitDefault;
    const page = { tenant, agentId, afterPosition, limit, bytesMax: LIMITS.answerBytesMax };
    const look = (): Promise<readonly Mail[]> =>
      this.#store.availableMail({ ...page, nowMs: this.#clock.nowMs() });
    const mail = await this.#waitFor(principal, agentId, query.wait_ms ?? 0, waiting, look);
    if (query.peek !== true && !isGone(waiting)) await this.#markDelivered(principal, agentId, mail);
    const cursor = mail.at(-1)?.delivery.position ?? afterPosition;
    return { messages: mail.map(viewMail), cursor: String(cursor) };
  }

  async lease(
    principal: Principal,
    agent: string,
    input: unknown,
    waiting: Waiting = {},
  ): Promise<LeaseResponse> {
    const request = parseLease(input) as LeaseRequest;
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const wanted = {
      purpose: undefined,
      worker: request.worker ?? null,
      leaseMs: request.lease_ms ?? null,
      waitMs: request.wait_ms ?? 0,
    };
    const mail = await this.#lease(principal, agentId, request.max ?? 1, wanted, waiting);
    return { messages: mail.map(viewMail) as (MailboxItem & { lease: NonNullable<MailboxItem["lease"]> })[] };
  }

  /** Leases the oldest letter of one purpose; the rest of the mailbox stays as it is. */
  async take(
    principal: Principal,
    agent: string,
    wanted: WantedLease,
    waiting: Waiting = {},
  ): Promise<Mail | undefined> {
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const [mail] = await this.#lease(principal, agentId, 1, wanted, waiting);
    return isGone(waiting) ? undefined : mail;
  }

  /** The oldest available letter of one purpose, without touching it. */
  async oldest(
    principal: Principal,
    agent: string,
    wanted: Wanted,
    waiting: Waiting = {},
  ): Promise<Mail | undefined> {
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.read");
    const { tenant } = principal;
    const { purpose, waitMs } = wanted;
    const page = { tenant, agentId, purpose, afterPosition: 0, limit: 1, bytesMax: LIMITS.answerBytesMax };
    const [mail] = await this.#waitFor(principal, agentId, waitMs, waiting, () =>
      this.#store.availableMail({ ...page, nowMs: this.#clock.nowMs() }),
    );
    return mail;
  }

  /** One bad id does not fail the rest. Acknowledging twice is harmless and counted once. */
  async ack(principal: Principal, agent: string, input: unknown): Promise<AckResponse> {
    const request: AckRequest = parseAck(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    if (request.message_ids === undefined && request.leases === undefined) {
      throw new RelayError("invalid_argument", "ack: give message_ids or leases");
    }
    const ids = (request.message_ids ?? []).map((message_id) => ({ message_id, lease_id: undefined }));
    let acknowledged = 0;
    const results = await this.#each([...ids, ...(request.leases ?? [])], async (item) => {
      const settled = await this.#change(principal, agentId, item.message_id, (delivery, nowMs) =>
        acknowledge(delivery, item.lease_id, nowMs),
      );
      if (settled !== undefined) acknowledged += 1;
      return undefined;
    });
    return { acknowledged, results };
  }

  async release(principal: Principal, agent: string, input: unknown): Promise<ReleaseResponse> {
    const request = parseRelease(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const results = await this.#each(leasesOf(request), async (item) => {
      await this.#change(principal, agentId, item.message_id, (delivery) => release(delivery, item.lease_id));
      return undefined;
    });
    return { released: results.filter((result) => result.ok).length, results };
  }

  /** Extends leases; a renewal is not journaled. */
  async renew(principal: Principal, agent: string, input: unknown): Promise<RenewResponse> {
    const request = parseRenew(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const leases = leasesOf(request);
    const renewed = await this.#store.renewLeases(
      principal.tenant,
      agentId,
      leases.map((ref) => ({ messageId: ref.message_id, leaseId: ref.lease_id })),
      this.#clock.nowMs() + request.lease_ms,
    );
    const results = await this.#each(leases, async (item) => {
      const delivery = renewed.get(item.message_id);
      if (delivery?.leaseId === item.lease_id) return viewLease(delivery);
      throw await this.#whyLost(principal.tenant, agentId, item);
    });
    return { renewed: renewed.size, results };
  }

  /** The mail can never be done: it is dead, and its sender is told why. */
  async fail(
    principal: Principal,
    agent: string,
    input: unknown,
  ): Promise<Pick<MessageResponse, "delivery">> {
    const request = parseFail(input);
    const agentId = await this.#mailboxOf(principal, agent, "mailbox.settle");
    const { tenant } = principal;
    const spendInTurn = this.#spenders.at(tenant, agentId);
    const decide = async (): Promise<Decision<Pick<MessageResponse, "delivery">>> => {
      const nowMs = this.#clock.nowMs();
      const stationery = { ids: this.#ids, nowMs, messageTtlMs: this.#messageTtlMs };
      const delivery = await this.#deliveryIn(tenant, agentId, request.message_id);
      const demand = await demandOfGivingUp(this.#store, delivery, request.lease_id);
      const pass = demand === undefined ? {} : await this.#gate.pass(principal, demand);
      const dead = fail(delivery, request.lease_id, request.reason, nowMs);
      const by = { actor: agentId, resultFrom: agentId };
      const changes = await undeliveredChanges(this.#store, stationery, dead, by);
      return { changes: combine(tenant, [pass, ...changes]), answer: { delivery: viewDelivery(dead) } };
    };
    return decideAndCommit(this.#store, decide, spendInTurn);
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
    wanted: Omit<WantedLease, "purpose"> & { readonly purpose: MailPurpose | undefined },
    waiting: Waiting,
  ): Promise<readonly Mail[]> {
    const { tenant } = principal;
    const { purpose, worker, leaseMs, waitMs } = wanted;
    const take = (): Promise<readonly Mail[]> => {
      const nowMs = this.#clock.nowMs();
      return this.#store.lease(
        {
          tenant,
          agentId,
          worker,
          purpose,
          leaseIds: Array.from({ length: max }, () => this.#ids.lease()),
          bytesMax: LIMITS.answerBytesMax,
          nowMs,
          leaseExpiresAtMs: leaseMs === null ? null : nowMs + leaseMs,
        },
        (delivery) => leasedEvent(delivery, nowMs),
      );
    };
    const mail = await this.#waitFor(principal, agentId, waitMs, waiting, take);
    if (isGone(waiting)) await this.#giveBack(principal, agentId, mail);
    await this.#store.touchAgent(tenant, agentId, this.#clock.nowMs());
    return mail;
  }

  /** Looks at once; when there is nothing, looks again whenever the mailbox changes, until the time is over. */
  async #waitFor(
    principal: Principal,
    agentId: AgentId,
    waitMs: number,
    waiting: Waiting,
    look: () => Promise<readonly Mail[]>,
  ): Promise<readonly Mail[]> {
    if (waitMs === 0) return look();
    const { signal } = waiting;
    using watch = this.#store.feed.watch(mailboxTopic(principal.tenant, agentId));
    const endMs = this.#clock.nowMs() + waitMs;
    for (;;) {
      const mail = await look();
      const leftMs = endMs - this.#clock.nowMs();
      if (mail.length > 0 || leftMs <= 0 || signal?.aborted === true) return mail;
      if (!(await watch.changed({ timeoutMs: leftMs, signal }))) return mail;
      await this.#guard.assertStillKnown(principal);
    }
  }

  /** A worker that hung up while its lease was being written would never know of it. */
  async #giveBack(principal: Principal, agentId: AgentId, mail: readonly Mail[]): Promise<void> {
    await Promise.all(
      mail.map(({ delivery }) =>
        this.#change(principal, agentId, delivery.messageId, (leased) =>
          release(leased, delivery.leaseId ?? ""),
        ),
      ),
    );
  }

  async #markDelivered(principal: Principal, agentId: AgentId, mail: readonly Mail[]): Promise<void> {
    const nowMs = this.#clock.nowMs();
    await this.#store.touchAgent(principal.tenant, agentId, nowMs);
    const unread = mail.filter(({ delivery }) => delivery.deliveredAtMs === null);
    if (unread.length === 0) return;
    try {
      await this.#store.markDelivered(
        principal.tenant,
        unread.map(({ delivery }) => delivery.messageId),
        nowMs,
        (delivery) => deliveryEvent("message.delivered", delivery, agentId, nowMs, {}),
      );
    } catch (reason) {
      // A full disk keeps nobody from reading: the mark can come with a later read.
      if (RelayError.from(reason).code !== "storage_full") throw reason;
    }
  }

  /** One rule on one delivery, committed with its event. Undefined when nothing had to change. */
  async #change(
    principal: Principal,
    agentId: AgentId,
    messageId: string,
    rule: (delivery: DeliveryRecord, nowMs: number) => DeliveryRecord | undefined,
  ): Promise<DeliveryRecord | undefined> {
    const { tenant } = principal;
    return decideAndCommit(this.#store, async () => {
      const nowMs = this.#clock.nowMs();
      const changed = rule(await this.#deliveryIn(tenant, agentId, messageId), nowMs);
      if (changed === undefined) return { changes: undefined, answer: undefined };
      const type = changed.state === "available" ? "message.released" : "message.acknowledged";
      const event = deliveryEvent(type, changed, agentId, nowMs, {});
      const act = { deliveries: [changed], events: [event] };
      const freed = await freeReservations(this.#store, changed);
      return { changes: combine(tenant, [act, freed]), answer: changed };
    });
  }

  async #each<Item extends Pick<LeaseRef, "message_id">>(
    items: readonly Item[],
    act: (item: Item) => Promise<ReturnType<typeof viewLease>>,
  ): Promise<readonly ItemResult[]> {
    return Promise.all(
      items.map(async (item): Promise<ItemResult> => {
        const { message_id } = item;
        try {
          const lease = await act(item);
          return { message_id, ok: true, ...(lease === undefined ? {} : { lease }) };
        } catch (reason) {
          const { code, message, details } = RelayError.from(reason);
          return {
            message_id,
            ok: false,
            error: { code, message, ...(details === undefined ? {} : { details }) },
          };
        }
      }),
    );
  }

  async #deliveryIn(tenant: string, agentId: AgentId, messageId: string): Promise<DeliveryRecord> {
    const delivery = await this.#store.delivery(tenant, messageId);
    if (delivery?.agentId === agentId) return delivery;
    throw new RelayError("not_found", `${agentId} has no message ${messageId}`);
  }

  async #whyLost(tenant: string, agentId: AgentId, ref: LeaseRef): Promise<RelayError> {
    try {
      const delivery = await this.#deliveryIn(tenant, agentId, ref.message_id);
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

function leasedEvent(delivery: DeliveryRecord, atMs: number): EventDraft {
  const { attempt, leaseId, worker } = delivery;
  const data = { attempt, lease_id: leaseId, ...(worker === null ? {} : { worker }) };
  return deliveryEvent("message.leased", delivery, delivery.agentId, atMs, data);
}
