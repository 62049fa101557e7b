import {
  type DuplicateRisk,
  LIMITS,
  POSTMASTER,
  type QueueEntry,
  QueueQuerySchema,
  type QueueResponse,
  RelayError,
  type RepairRequest,
  RepairRequestSchema,
  type RepairResponse,
  type RetryStalePolicy,
  RetryStaleRequestSchema,
  type RetryStaleResponse,
  type RetrySkipReason,
} from "@a2a-relay/protocol";
import type { RepairDemand, RepairWish } from "../access/capability-demand.ts";
import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import { actorName, type Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import { NO_SUBJECT } from "../ports/journal.ts";
import { deliveryEvent, freeReservations } from "../rules/task-changes.ts";
import type { DeliveryPurpose, DeliveryRecord, QueuedDelivery } from "../ports/deliveries.ts";
import { forceError, requeue } from "../rules/delivery-state.ts";
import { viewLease } from "./delivery-view.ts";
import {
  inFlight,
  isSeenBy,
  partiesOf,
  type RepairSubject,
  subjectOfMessage,
  subjectOfTask,
} from "./repair-subject.ts";
import {
  fillPolicy,
  leaseAgeMs,
  type RetryReport,
  type SkippedLease,
  skipReason,
  viewReport,
} from "./retry-policy.ts";
import { undeliveredChanges } from "../rules/undelivered.ts";
import { ownedSinceMs } from "../rules/agent-owner.ts";

const parseQueue = parserOf(QueueQuerySchema, "query");
const parseRepair = parserOf(RepairRequestSchema, "repair");
const parseRetry = parserOf(RetryStaleRequestSchema, "retry-stale");

const AUTOMATIC_REASON = "automatic retry policy requeued stale idempotent lease";

/** A repair of stuck work. Its wire has checked the shape, not the texts. */
export interface RepairOrder {
  readonly what: "message" | "task";
  /** As the caller knows it. */
  readonly name: string;
  readonly reason: string;
  readonly command:
    | {
        readonly action: "requeue";
        readonly lease_id?: string | null | undefined;
        readonly duplicate_risk: DuplicateRisk;
      }
    | {
        readonly action: "force_error";
        readonly lease_id?: string | null | undefined;
        readonly message: string;
      };
}

export interface RepairParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly gate: CapabilityGate;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly capabilityMutex: KeyedMutex;
}

/**
 * The queue, as an operator sees it and an agent sees its own mailbox; and repairs of stuck work, by an operator, or by
 * an agent with a capability for its own. A repair always has a reason.
 */
export class RepairService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #gate: CapabilityGate;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #capabilityMutex: KeyedMutex;
  readonly #messageTtlMs: number;

  constructor(parts: RepairParts, settings: { readonly messageTtlMs: number }) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#gate = parts.gate;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#capabilityMutex = parts.capabilityMutex;
    this.#messageTtlMs = settings.messageTtlMs;
  }

  async queue(principal: Principal, input: unknown): Promise<QueueResponse> {
    const query = parseQueue(input);
    const { tenant } = principal;
    const agentId =
      query.agent === undefined ? undefined : await this.#directory.resolve(tenant, query.agent, "agent");
    await this.#guard.authorize(principal, "queue.read", agentId === undefined ? {} : { agentId });
    const nowMs = this.#clock.nowMs();
    const { min_lease_age_ms: ageMs, deadline_within_ms: withinMs } = query;
    const queued = await this.#store.deliveries.queue({
      tenant,
      agentId,
      state: query.state,
      leasedBeforeMs: ageMs === undefined ? undefined : nowMs - ageMs,
      deadlineBeforeMs: withinMs === undefined ? undefined : nowMs + withinMs,
      limit: query.limit ?? LIMITS.listLimitDefault,
    });
    // An agent does not see what an earlier owner of its id settled.
    const sinceMs =
      principal.kind === "agent" ? await ownedSinceMs(this.#store, tenant, principal.agentId) : 0;
    const entries = queued
      .filter(({ acceptedAtMs }) => acceptedAtMs >= sinceMs)
      .map((each) => viewEntry(each, nowMs));
    const totals = Object.fromEntries(await this.#store.deliveries.countByState(tenant, agentId));
    return { entries, totals: { held: 0, available: 0, leased: 0, ...totals } };
  }

  async repair(principal: Principal, input: unknown): Promise<RepairResponse> {
    await this.#guard.authorize(principal, "repair.write");
    const { message_id: messageId, task_id: taskId, reason, command }: RepairRequest = parseRepair(input);
    const { tenant } = principal;
    if (messageId !== undefined && taskId === undefined) {
      const find = (): Promise<RepairSubject | undefined> => subjectOfMessage(this.#store, tenant, messageId);
      return this.order(principal, { what: "message", name: messageId, reason, command }, find);
    }
    if (taskId === undefined || messageId !== undefined) {
      throw new RelayError("invalid_argument", "repair: give either message_id or task_id");
    }
    return this.order(principal, { what: "task", name: taskId, reason, command }, async () =>
      subjectOfTask(this.#store, (await this.#store.tasks.get(tenant, [taskId]))[0]),
    );
  }

  /**
   * A repair from any wire. `find` resolves the name that the caller used; it is called only after the caller was
   * authorised. An agent repairs what it takes part in, and gets the same error for work of others and for work that
   * does not exist.
   */
  async order(
    principal: Principal,
    order: RepairOrder,
    find: () => Promise<RepairSubject | undefined>,
  ): Promise<RepairResponse> {
    await this.#guard.authorize(principal, "repair.write");
    const wish: RepairWish = { kind: "repair", action: order.command.action, name: order.name };
    const spendExclusively = this.#capabilityMutex.at(principal.tenant, actorName(principal));
    const decide = async (): Promise<Decision<RepairResponse>> => {
      await this.#gate.assertMayRepair(principal, wish);
      const subject = await find();
      if (subject === undefined || !isSeenBy(principal, subject)) {
        await this.#gate.recordUnseen(principal, wish);
        throw new RelayError(
          "not_found",
          `a2a repair rejected: ${order.what} ${order.name} is not visible to the authenticated peer or is no longer queued`,
        );
      }
      const delivery = inFlight(subject, order.name);
      const pass = await this.#gate.pass(principal, demandOf(wish, subject, order.command));
      assertOrder(order, delivery);
      const { changes, answer } = await this.#perform(principal, delivery, order);
      return { changes: combine(principal.tenant, [pass, changes]), answer };
    };
    return decideAndCommit(this.#store, decide, spendExclusively);
  }

  /**
   * Requeues stale leases of idempotent work within the policy's bounds. Scans leases only, oldest first; with
   * `enabled` false it changes nothing and reports what it would have scanned.
   */
  async retryStale(principal: Principal, input: unknown): Promise<RetryStaleResponse> {
    return viewReport(await this.retry(principal, input));
  }

  /** The same for wires with their own answer. An agent scans only what it sent or received. */
  async retry(principal: Principal, input: unknown, purpose?: DeliveryPurpose): Promise<RetryReport> {
    await this.#guard.authorize(principal, "repair.write");
    const policy = fillPolicy(parseRetry(input ?? {}));
    const { events = [] } = await this.#gate.pass(principal, { kind: "retry" });
    for (const event of events) await this.#guard.record(principal.tenant, event);
    return this.#scan(principal, policy, purpose);
  }

  /** The same on a schedule, where an operator switched it on. A scan that found leases is recorded. */
  async retryOnSchedule(principal: Principal, bounds: Omit<RetryStalePolicy, "enabled">): Promise<void> {
    await this.#guard.authorize(principal, "repair.write");
    const pass = await this.#gate.pass(principal, { kind: "retry" });
    const report = await this.#scan(principal, { ...bounds, enabled: true }, undefined);
    if (report.considered === 0) return;
    const { considered, requeued, skipped } = report;
    const data = { considered, requeued: requeued.length, skipped: skipped.length, policy: bounds };
    const atMs = this.#clock.nowMs();
    await this.#store.commit({
      tenant: principal.tenant,
      events: [
        ...(pass.events ?? []),
        { type: "retry.scanned", atMs, actor: POSTMASTER, ...NO_SUBJECT, data },
      ],
    });
  }

  async #scan(
    principal: Principal,
    policy: RetryStalePolicy,
    purpose: DeliveryPurpose | undefined,
  ): Promise<RetryReport> {
    const queued = await this.#store.deliveries.queue({
      tenant: principal.tenant,
      agentId: undefined,
      party: principal.kind === "agent" ? principal.agentId : undefined,
      purpose,
      state: "leased",
      leasedBeforeMs: undefined,
      deadlineBeforeMs: undefined,
      limit: policy.scan_limit,
    });
    const requeued: DeliveryRecord[] = [];
    const skipped: SkippedLease[] = [];
    const nowMs = this.#clock.nowMs();
    for (const { delivery } of queued) {
      const isFull = requeued.length >= policy.max_requeues;
      const reason =
        skipReason(delivery, policy, nowMs) ??
        (isFull ? "limit_reached" : await this.#retry(principal, delivery));
      if (reason === undefined) requeued.push(delivery);
      else skipped.push({ delivery, reason, leaseAgeMs: leaseAgeMs(delivery, nowMs) });
    }
    return { policy, considered: queued.length, requeued, skipped };
  }

  /** Undefined when it was requeued; else why not. */
  async #retry(principal: Principal, observed: DeliveryRecord): Promise<RetrySkipReason | undefined> {
    const command = {
      action: "requeue",
      duplicate_risk: "idempotent",
      lease_id: observed.leaseId ?? undefined,
    } as const;
    const name = observed.taskId ?? observed.messageId;
    const what = observed.taskId === null ? "message" : "task";
    const find = (): Promise<RepairSubject | undefined> =>
      subjectOfMessage(this.#store, principal.tenant, observed.messageId);
    try {
      await this.order(principal, { what, name, reason: AUTOMATIC_REASON, command }, find);
      return undefined;
    } catch (reason) {
      const { code } = RelayError.from(reason);
      if (code === "lease_lost" || code === "wrong_state" || code === "not_found") return "lease_lost";
      if (code === "permission_denied") return "capability_scope_mismatch";
      throw reason;
    }
  }

  #perform(
    principal: Principal,
    delivery: DeliveryRecord,
    { command, reason }: RepairOrder,
  ): Promise<{ readonly changes: Changes; readonly answer: RepairResponse }> {
    const lease_id = command.lease_id ?? undefined;
    return command.action === "requeue"
      ? this.#requeue(principal, delivery, { ...command, lease_id, reason })
      : this.#forceError(principal, delivery, { ...command, lease_id, reason });
  }

  async #requeue(
    principal: Principal,
    delivery: DeliveryRecord,
    command: {
      readonly lease_id?: string | undefined;
      readonly duplicate_risk: DuplicateRisk;
      readonly reason: string;
    },
  ): Promise<{ readonly changes: Changes; readonly answer: RepairResponse }> {
    const nowMs = this.#clock.nowMs();
    const freed = requeue(delivery, command.lease_id);
    const event = deliveryEvent("message.requeued", freed, actorName(principal), nowMs, {
      reason: command.reason,
      duplicate_risk: command.duplicate_risk,
      lease_id: delivery.leaseId,
      attempt: delivery.attempt,
    });
    const changes = combine(principal.tenant, [
      { deliveries: [freed], events: [event] },
      await freeReservations(this.#store, delivery),
    ]);
    return { changes, answer: outcomeOf(freed, "requeued") };
  }

  async #forceError(
    principal: Principal,
    delivery: DeliveryRecord,
    command: {
      readonly lease_id?: string | undefined;
      readonly message: string;
      readonly reason: string;
    },
  ): Promise<{ readonly changes: Changes; readonly answer: RepairResponse }> {
    const nowMs = this.#clock.nowMs();
    const defaults = { ids: this.#ids, nowMs, messageTtlMs: this.#messageTtlMs };
    const dead = forceError(delivery, command.lease_id, command.message, nowMs);
    const by = { actor: actorName(principal), resultFrom: delivery.agentId };
    const changes = await undeliveredChanges(this.#store, defaults, dead, by, {
      repair_reason: command.reason,
      lease_id: delivery.leaseId,
    });
    return { changes: combine(principal.tenant, changes), answer: outcomeOf(dead, "forced_error") };
  }
}

function viewEntry(queued: QueuedDelivery, nowMs: number): QueueEntry {
  const { delivery, deadlineMs } = queued;
  const lease = viewLease(delivery);
  return {
    message_id: delivery.messageId,
    ...(delivery.taskId === null ? {} : { task_id: delivery.taskId }),
    recipient: delivery.agentId,
    sender: delivery.sender,
    kind: queued.kind,
    subject: queued.subject,
    state: delivery.state,
    attempt: delivery.attempt,
    duplicate_safety: delivery.duplicateSafety,
    accepted_at: new Date(queued.acceptedAtMs).toISOString(),
    ...(deadlineMs === null ? {} : { deadline_ms: deadlineMs }),
    ...(lease === undefined ? {} : { lease, lease_age_ms: leaseAgeMs(delivery, nowMs) }),
  };
}

function demandOf(wish: RepairWish, subject: RepairSubject, command: RepairOrder["command"]): RepairDemand {
  const { task } = subject;
  return {
    ...wish,
    name: task === undefined ? wish.name : (task.clientId ?? task.id),
    parties: partiesOf(subject),
    taskId: task?.id ?? null,
    clientTaskId: task?.clientId ?? null,
    leaseId: command.lease_id ?? undefined,
    duplicateRisk: command.action === "requeue" ? command.duplicate_risk : undefined,
  };
}

/** Checks what the schema cannot: texts that are not blank, and that the lease is still the one observed. */
function assertOrder({ what, name, reason, command }: RepairOrder, delivery: DeliveryRecord): void {
  const refuse = (field: string): never => {
    throw new RelayError("invalid_argument", `invalid repair request: ${field} must not be empty`);
  };
  if (reason.trim() === "") refuse("reason");
  if (command.action === "force_error" && command.message.trim() === "") refuse("force_error message");
  const observed = command.lease_id ?? delivery.leaseId;
  if (observed === delivery.leaseId) return;
  throw new RelayError(
    "lease_lost",
    `lease mismatch for ${what} ${name}: expected ${String(observed)}, actual ${String(delivery.leaseId)}; list the queue again`,
    { details: { expected: observed, actual: delivery.leaseId } },
  );
}

function outcomeOf(delivery: DeliveryRecord, action: RepairResponse["action"]): RepairResponse {
  return {
    message_id: delivery.messageId,
    ...(delivery.taskId === null ? {} : { task_id: delivery.taskId }),
    action,
    state: delivery.state,
    attempt: delivery.attempt,
  };
}
