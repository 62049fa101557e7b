import {
  type AgentId,
  isTerminal,
  LIMITS,
  parseRecordId,
  type QueueAutoRetried,
  QueueCallerSchema,
  type QueueCompacted,
  QueueNextSchema,
  type QueueRecent,
  QueueRecentSchema,
  type QueueRepaired,
  QueueRepairRequestSchema,
  type QueueResultAccepted,
  type QueueResultAcked,
  type QueueResultOption,
  type QueueResults,
  QueueRetryStaleSchema,
  type QueueSnapshot,
  type QueueTaskAccepted,
  type QueueTaskOption,
  QueueTaskResultSchema,
  type QueueTasks,
  QueueTaskSchema,
  RelayError,
  ResultAckSchema,
  ResultNextSchema,
  type TaskQueueQuery,
  TaskQueueQuerySchema,
  type Verb,
} from "@a2a-relay/protocol";
import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import { combine, decideAndCommit } from "../mechanisms/commit-retry.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import type { Retention } from "../journal/retention.ts";
import type { RepairService } from "../mailboxes/repair-service.ts";
import type { MessageService } from "../messages/message-service.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskService } from "../tasks/task-service.ts";
import { type AgentName, QueueAgents } from "./queue-agents.ts";
import { QueueIntake, type QueueIntakeParts } from "./queue-intake.ts";
import {
  assertTaskTexts,
  shownId,
  taskDigest,
  toEnding,
  toLease,
  toMessage,
  toOutcome,
  toRetryReport,
} from "./queue-mapping.ts";
import { NamedQueueTasks } from "./queue-tasks.ts";
import { QueueView } from "./queue-view.ts";

const parseTask = parserOf(QueueTaskSchema, "task");
const parseResult = parserOf(QueueTaskResultSchema, "result");
const parseCaller = parserOf(QueueCallerSchema, "query");
const parseNext = parserOf(QueueNextSchema, "next");
const parseNextResult = parserOf(ResultNextSchema, "next");
const parseAck = parserOf(ResultAckSchema, "ack");
const parseRecent = parserOf(QueueRecentSchema, "query");
const parseQueue = parserOf(TaskQueueQuerySchema, "query");
const parseRepair = parserOf(QueueRepairRequestSchema, "repair");
const parseRetry = parserOf(QueueRetryStaleSchema, "retry-stale");

export interface TaskQueueParts extends QueueIntakeParts {
  readonly directory: Directory;
  readonly gate: CapabilityGate;
  readonly messages: MessageService;
  readonly repairs: RepairService;
  readonly retention: Retention;
  readonly tasks: TaskService;
}

/**
 * The relay as a task queue: the same messages and tasks for a wire that has only tasks, leases and results. All rules
 * are those of the services that it calls.
 */
export class TaskQueueService {
  readonly #parts: TaskQueueParts;
  readonly #agents: QueueAgents;
  readonly #named: NamedQueueTasks;
  readonly #view: QueueView;
  readonly #intake: QueueIntake;

  constructor(parts: TaskQueueParts) {
    this.#parts = parts;
    this.#agents = new QueueAgents(parts);
    this.#named = new NamedQueueTasks(parts.store);
    this.#view = new QueueView(parts.store, this.#agents);
    this.#intake = new QueueIntake(parts);
  }

  /** Finds an agent by its public key where the caller gives one, else by name. */
  async resolve(principal: Principal, agent: AgentName): Promise<AgentId> {
    return this.#agents.resolve(principal.tenant, agent, "agent");
  }

  /** The same task with the same id is accepted again; another task with it is a conflict. */
  async sendTask(principal: Principal, input: unknown): Promise<QueueTaskAccepted> {
    const task = parseTask(input);
    const { tenant } = principal;
    const clientTaskId = parseRecordId(task.id, "id");
    const sender = await this.#agents.sender(principal, task.sender);
    assertTaskTexts(task);
    const recipient = await this.#agents.resolve(tenant, task.recipient, "recipient");
    const parentId =
      task.parent == null ? undefined : await this.#named.parentId(tenant, sender, task.parent);
    const message = toMessage(task, { sender, recipient, parentId });
    await this.#parts.messages.send(principal, message, {
      naming: { clientTaskId, digest: taskDigest(task) },
    });
    return { kind: "a2a_task_queued", task_id: clientTaskId };
  }

  /** Leases the oldest work without an expiry. */
  async nextTask(principal: Principal, input: unknown, waiting: WaitOptions = {}): Promise<QueueTaskOption> {
    const { agent, worker = null, wait_ms: waitMs = 0 } = parseNext(input ?? {});
    const wanted = { purpose: "work", worker, leaseMs: null, waitMs } as const;
    const leased = await this.#intake.lease(principal, agent, wanted, waiting);
    const task = leased === undefined ? undefined : await this.#view.task(leased);
    if (leased === undefined || task === undefined) return { kind: "a2a_task_opt", task: null };
    return { kind: "a2a_task_opt", task, lease: toLease(leased.delivery) };
  }

  async recentTasks(principal: Principal, input: unknown): Promise<QueueTasks> {
    const query: QueueRecent = parseRecent(input);
    const party = await this.#acting(principal, query.agent, "task-queue.read");
    const entries = await this.#view.tasks({
      tenant: principal.tenant,
      party,
      state: "queued",
      leasedBeforeMs: undefined,
      deadlineBeforeMs: undefined,
      nowMs: this.#parts.clock.nowMs(),
      limit: query.limit ?? LIMITS.queueLimitDefault,
    });
    return { kind: "a2a_tasks", tasks: entries.map(({ task }) => task) };
  }

  /**
   * Ends a task of the caller's. An unknown task is refused before any other check, so that refusals reveal nothing
   * about tasks of others. `caller` names the agent that an operator acts for.
   */
  async postResult(principal: Principal, input: unknown, caller: unknown = {}): Promise<QueueResultAccepted> {
    const { agent } = parseCaller(caller);
    const result = parseResult(input);
    const name = result.task_id;
    const worker = await this.#acting(principal, agent, "tasks.work");
    const ending = toEnding(result);
    const leaseId = result.lease_id ?? undefined;
    const about = { name, leaseId, digest: ending.digest };
    const task = await this.#named.answered(principal.tenant, worker, about);
    if (task === undefined) return this.#refuseUnknown(principal, name);
    const isOver = isTerminal(task.state);
    const lease = leaseId ?? (isOver ? undefined : await this.#named.leaseOf(task, name));
    await this.#parts.tasks.end(principal, task.id, lease, ending);
    return { kind: "a2a_result_posted", task_id: name };
  }

  /** Acknowledges the oldest result at once, or leases it until the caller acknowledges it. */
  async nextResult(
    principal: Principal,
    input: unknown,
    byDefault: "now" | "explicit",
    waiting: WaitOptions = {},
  ): Promise<QueueResultOption> {
    const { agent, ack = byDefault, wait_ms: waitMs = 0 } = parseNextResult(input ?? {});
    const wanted = { purpose: "result", waitMs } as const;
    if (ack === "now") {
      const drained = await this.#intake.drain(principal, agent, wanted, waiting);
      const result = drained === undefined ? null : await this.#view.result(drained);
      return { kind: "a2a_result_opt", result };
    }
    const lease = { ...wanted, worker: null, leaseMs: LIMITS.resultLeaseMsDefault };
    const leased = await this.#intake.lease(principal, agent, lease, waiting);
    if (leased === undefined) return { kind: "a2a_result_opt", result: null };
    const result = await this.#view.result(leased);
    return { kind: "a2a_result_opt", result, lease: toLease(leased.delivery) };
  }

  /** Acknowledging a result twice is harmless. */
  async ackResult(principal: Principal, input: unknown): Promise<QueueResultAcked> {
    const { agent, message_id, lease_id } = parseAck(input);
    const { tenant } = principal;
    const reader = await this.#acting(principal, agent, "mailbox.settle");
    const [delivery] = await this.#parts.store.deliveries.get(tenant, [message_id]);
    const isTheirs = reader === undefined || reader === delivery?.agentId;
    if (delivery === undefined || delivery.purpose !== "result" || !isTheirs) {
      throw new RelayError("not_found", `message_id: there is no result ${message_id}`);
    }
    const leases = [{ message_id, lease_id }];
    const [outcome] = (await this.#parts.mailboxes.ack(principal, delivery.agentId, { leases })).results;
    if (outcome?.ok === false) {
      const { code, message, details } = outcome.error;
      throw new RelayError(code, message, { details });
    }
    return { kind: "a2a_result_acked", task_id: await this.#shownIdOf(tenant, delivery.taskId) };
  }

  async recentResults(principal: Principal, input: unknown): Promise<QueueResults> {
    const query: QueueRecent = parseRecent(input);
    const agentId = await this.#acting(principal, query.agent, "task-queue.read");
    const limit = query.limit ?? LIMITS.queueLimitDefault;
    const nowMs = this.#parts.clock.nowMs();
    const results = await this.#view.results({ tenant: principal.tenant, agentId, nowMs, limit });
    return { kind: "a2a_results", results };
  }

  /** Queued and leased tasks and unacknowledged results, with the filters that were applied. */
  async queue(principal: Principal, input: unknown): Promise<QueueSnapshot> {
    const query: TaskQueueQuery = parseQueue(input);
    const { min_lease_age_ms: ageMs, deadline_within_ms: withinMs, state_filter: state } = query;
    const party = await this.#acting(principal, query.agent, "task-queue.read");
    const { tenant } = principal;
    const limit = query.limit ?? LIMITS.queueLimitDefault;
    const nowMs = this.#parts.clock.nowMs();
    const tasks = await this.#view.tasks({
      tenant,
      party,
      state,
      leasedBeforeMs: ageMs === undefined ? undefined : nowMs - ageMs,
      deadlineBeforeMs: withinMs === undefined ? undefined : nowMs + withinMs,
      nowMs,
      limit,
    });
    return {
      kind: "a2a_queue",
      limit,
      min_lease_age_ms: ageMs ?? null,
      deadline_within_ms: withinMs ?? null,
      state_filter: state ?? null,
      tasks,
      results: await this.#view.results({ tenant, agentId: party, nowMs, limit }),
    };
  }

  async repair(principal: Principal, input: unknown): Promise<QueueRepaired> {
    const { task_id: name, reason, command } = parseRepair(input);
    let subject: TaskRecord | undefined;
    const order = { what: "task", name, reason, command } as const;
    const answer = await this.#parts.repairs.order(principal, order, async () => {
      const found = await this.#named.repaired(principal, name, command.lease_id ?? undefined);
      subject = found?.task;
      return found;
    });
    const shownAs = subject === undefined ? name : shownId(subject);
    return { kind: "a2a_repaired", outcome: toOutcome(shownAs, command, answer.attempt) };
  }

  /** Considers leased work only; other leased messages are not in this queue. */
  async retryStale(principal: Principal, input: unknown): Promise<QueueAutoRetried> {
    const { policy, ...bare } = parseRetry(input ?? {});
    if (policy !== undefined && Object.keys(bare).length > 0) {
      throw new RelayError("invalid_argument", "retry-stale: give policy, or its members, not both");
    }
    const report = await this.#parts.repairs.retry(principal, policy ?? bare, "work");
    const ids = new Map<string, string>();
    const considered = [...report.requeued, ...report.skipped.map(({ delivery }) => delivery)];
    for (const { messageId, taskId } of considered) {
      ids.set(messageId, await this.#shownIdOf(principal.tenant, taskId));
    }
    return { kind: "a2a_auto_retried", report: toRetryReport(report, ids) };
  }

  /** Archives finished and acknowledged messages now instead of after the retention period. */
  async compact(principal: Principal): Promise<QueueCompacted> {
    await this.#parts.guard.authorize(principal, "mail.compact");
    const { tenant } = principal;
    await decideAndCommit(this.#parts.store, async () => {
      const pass = await this.#parts.gate.pass(principal, { kind: "compact" });
      const isEmpty = (pass.events ?? []).length + (pass.capabilities ?? []).length === 0;
      return { changes: isEmpty ? undefined : combine(tenant, [pass]), answer: undefined };
    });
    return { kind: "a2a_compacted", dropped: await this.#parts.retention.compact(tenant) };
  }

  /** The agent that the caller acts for: an agent itself; for an operator the named one, or all if it names none. */
  async #acting(principal: Principal, agent: string | undefined, verb: Verb): Promise<AgentId | undefined> {
    const own = principal.kind === "agent" ? principal.agentId : undefined;
    const agentId =
      agent === undefined ? own : await this.#parts.directory.resolve(principal.tenant, agent, "agent");
    await this.#parts.guard.authorize(principal, verb, agentId === undefined ? {} : { agentId });
    return agentId;
  }

  /** The same answer for a task that does not exist and for a task of another agent. */
  #refuseUnknown(principal: Principal, name: string): Promise<never> {
    const rejected = `a2a respond rejected: task_id ${name} was never dispatched through this daemon`;
    const error = new RelayError("not_found", rejected);
    return this.#parts.guard.refuse(principal, "tasks.work", {}, error, {
      reason: "unknown_task",
      task_id: name,
    });
  }

  async #shownIdOf(tenant: string, taskId: string | null): Promise<string> {
    const [task] = taskId === null ? [] : await this.#parts.store.tasks.get(tenant, [taskId]);
    return task === undefined ? (taskId ?? "") : shownId(task);
  }
}
