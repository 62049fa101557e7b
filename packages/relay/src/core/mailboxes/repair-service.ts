import {
  type DuplicateRisk,
  LIMITS,
  POSTMASTER,
  type QueueEntry,
  type QueueQuery,
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
import { authorize } from "../access/authorize.ts";
import { actorName, type Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import type { Clock } from "../environment/clock.ts";
import { combine, decideAndCommit } from "../environment/commit-retry.ts";
import type { Identifiers } from "../environment/identifiers.ts";
import type { Changes, RelayStore } from "../environment/relay-store.ts";
import { parserOf } from "../environment/schema-check.ts";
import type { ServiceParts } from "../environment/service-parts.ts";
import { deliveryEvent, freeReservations } from "../tasks/task-changes.ts";
import type { DeliveryRecord } from "./delivery-record.ts";
import { forceError, requeue } from "./delivery-state.ts";
import { viewLease } from "./delivery-view.ts";
import type { QueuedMail } from "./mailbox-store.ts";
import { undeliveredChanges } from "./undelivered.ts";

const parseQueue = parserOf(QueueQuerySchema, "query");
const parseRepair = parserOf(RepairRequestSchema, "repair");
const parseRetry = parserOf(RetryStaleRequestSchema, "retry-stale");

const AUTOMATIC_REASON = "automatic retry policy requeued stale idempotent lease";

/** What an operator sees of the queue and may do to stuck work. Always with a reason, never by itself. */
export class RepairService {
  readonly #store: RelayStore;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #messageTtlMs: number;

  constructor(parts: ServiceParts, settings: { readonly messageTtlMs: number }) {
    this.#store = parts.store;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#messageTtlMs = settings.messageTtlMs;
  }

  async queue(principal: Principal, input: unknown): Promise<QueueResponse> {
    authorize(principal, "queue.read");
    const query = parseQueue(input) as QueueQuery;
    const { tenant } = principal;
    const nowMs = this.#clock.nowMs();
    const { min_lease_age_ms: ageMs, deadline_within_ms: withinMs } = query;
    const agentId =
      query.agent === undefined ? undefined : await this.#directory.resolve(tenant, query.agent, "agent");
    const mail = await this.#store.queue({
      tenant,
      agentId,
      state: query.state,
      leasedBeforeMs: ageMs === undefined ? undefined : nowMs - ageMs,
      deadlineBeforeMs: withinMs === undefined ? undefined : nowMs + withinMs,
      limit: query.limit ?? LIMITS.listLimitDefault,
    });
    const entries = mail.map((each) => viewEntry(each, nowMs));
    const totals = Object.fromEntries(await this.#store.countOpenByState(tenant));
    return { entries, totals: { held: 0, available: 0, leased: 0, ...totals } };
  }

  async repair(principal: Principal, input: unknown): Promise<RepairResponse> {
    authorize(principal, "repair.write");
    const request: RepairRequest = parseRepair(input);
    const { command, reason } = request;
    return decideAndCommit(this.#store, async () => {
      const delivery = await this.#subject(principal.tenant, request);
      return command.action === "requeue"
        ? this.#requeue(principal, delivery, { ...command, reason })
        : this.#forceError(principal, delivery, { ...command, reason });
    });
  }

  /**
   * Requeues stale leases of idempotent work within the policy's bounds. Looks at leases only, oldest first;
   * with `enabled` false it changes nothing and reports what it would have looked at.
   */
  async retryStale(principal: Principal, input: unknown): Promise<RetryStaleResponse> {
    authorize(principal, "repair.write");
    const request = parseRetry(input ?? {});
    const policy: RetryStalePolicy = {
      enabled: request.enabled ?? false,
      min_lease_age_ms: request.min_lease_age_ms ?? 300_000,
      max_attempts: request.max_attempts ?? 3,
      max_requeues: request.max_requeues ?? 1,
      scan_limit: request.scan_limit ?? 100,
    };
    const leases = await this.#store.leasedMail(principal.tenant, policy.scan_limit);
    const requeued: RetryStaleResponse["requeued"][number][] = [];
    const skipped: RetryStaleResponse["skipped"][number][] = [];
    const nowMs = this.#clock.nowMs();
    for (const delivery of leases) {
      const full = requeued.length >= policy.max_requeues;
      const verdict = skipReason(delivery, policy, nowMs) ?? (full ? "limit_reached" : undefined);
      const subject = {
        message_id: delivery.messageId,
        ...(delivery.taskId === null ? {} : { task_id: delivery.taskId }),
        attempt: delivery.attempt,
      };
      const lost = verdict === undefined && !(await this.#retry(principal, delivery));
      const reason = verdict ?? (lost ? "lease_lost" : undefined);
      if (reason !== undefined) {
        skipped.push({ ...subject, reason, lease_age_ms: leaseAgeMs(delivery, nowMs) });
      } else {
        const key = delivery.idempotencyKey ?? "";
        requeued.push({ ...subject, lease_id: delivery.leaseId ?? "", idempotency_key: key });
      }
    }
    return { policy, considered: leases.length, requeued, skipped };
  }

  /** The same by the clock, where an operator switched it on. A scan that looked at something is recorded. */
  async retryOnSchedule(principal: Principal, policy: Omit<RetryStalePolicy, "enabled">): Promise<void> {
    const report = await this.retryStale(principal, { ...policy, enabled: true });
    if (report.considered === 0) return;
    const { considered, requeued, skipped } = report;
    const data = { considered, requeued: requeued.length, skipped: skipped.length, policy };
    const nobody = { agentId: null, messageId: null, taskId: null, threadId: null };
    const atMs = this.#clock.nowMs();
    await this.#store.commit({
      tenant: principal.tenant,
      events: [{ type: "retry.scanned", atMs, actor: POSTMASTER, ...nobody, data }],
    });
  }

  /** False when the lease had moved on since it was looked at. */
  async #retry(principal: Principal, observed: DeliveryRecord): Promise<boolean> {
    const { tenant } = principal;
    const command = {
      duplicate_risk: "idempotent" as const,
      lease_id: observed.leaseId ?? undefined,
      reason: AUTOMATIC_REASON,
    };
    try {
      await decideAndCommit(this.#store, async () => {
        const delivery = await this.#store.delivery(tenant, observed.messageId);
        return this.#requeue(principal, delivery ?? observed, command);
      });
      return true;
    } catch (reason) {
      const { code } = RelayError.from(reason);
      if (code === "lease_lost" || code === "wrong_state") return false;
      throw reason;
    }
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
    const stationery = { ids: this.#ids, nowMs, messageTtlMs: this.#messageTtlMs };
    const dead = forceError(delivery, command.lease_id, command.message, nowMs);
    const by = { actor: actorName(principal), resultFrom: delivery.agentId };
    const changes = await undeliveredChanges(this.#store, stationery, dead, by, {
      repair_reason: command.reason,
      lease_id: delivery.leaseId,
    });
    return { changes: combine(principal.tenant, changes), answer: outcomeOf(dead, "forced_error") };
  }

  async #subject(tenant: string, request: RepairRequest): Promise<DeliveryRecord> {
    const { message_id: messageId, task_id: taskId } = request;
    if ((messageId === undefined) === (taskId === undefined)) {
      throw new RelayError("invalid_argument", "repair: give either message_id or task_id");
    }
    if (messageId !== undefined) {
      const delivery = await this.#store.delivery(tenant, messageId);
      if (delivery !== undefined) return delivery;
      throw new RelayError("not_found", `there is no message ${messageId}`);
    }
    const task = await this.#store.task(tenant, taskId ?? "");
    if (task === undefined) throw new RelayError("not_found", `there is no task ${taskId ?? ""}`);
    const open = await this.#store.openDeliveriesOfTask(tenant, task.id);
    const leased = open.find((delivery) => delivery.state === "leased");
    if (leased !== undefined) return leased;
    throw new RelayError("wrong_state", `task ${task.id} is ${task.state} and none of its mail is leased`);
  }
}

function viewEntry(mail: QueuedMail, nowMs: number): QueueEntry {
  const { delivery, deadlineMs } = mail;
  const lease = viewLease(delivery);
  return {
    message_id: delivery.messageId,
    ...(delivery.taskId === null ? {} : { task_id: delivery.taskId }),
    recipient: delivery.agentId,
    sender: delivery.sender,
    kind: mail.kind,
    subject: mail.subject,
    state: delivery.state,
    attempt: delivery.attempt,
    duplicate_safety: delivery.duplicateSafety,
    accepted_at: new Date(mail.acceptedAtMs).toISOString(),
    ...(deadlineMs === null ? {} : { deadline_ms: deadlineMs }),
    ...(lease === undefined ? {} : { lease, lease_age_ms: leaseAgeMs(delivery, nowMs) }),
  };
}

/** In the order in which a person would ask. */
function skipReason(
  delivery: DeliveryRecord,
  policy: RetryStalePolicy,
  nowMs: number,
): RetrySkipReason | undefined {
  if (!policy.enabled) return "disabled";
  if (leaseAgeMs(delivery, nowMs) < policy.min_lease_age_ms) return "lease_too_young";
  if (delivery.idempotencyKey === null) return "missing_idempotency";
  if (delivery.duplicateSafety !== "idempotent") return "unsafe_duplicate_safety";
  if (delivery.attempt >= policy.max_attempts) return "max_attempts_reached";
  return undefined;
}

function leaseAgeMs(delivery: DeliveryRecord, nowMs: number): number {
  return Math.max(0, nowMs - (delivery.leasedAtMs ?? nowMs));
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
