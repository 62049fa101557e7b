import {
  type AgentId,
  formatInstant,
  isTerminal,
  LIMITS,
  type TaskEventsQuery,
  TaskEventsQuerySchema,
  type TaskEventView,
} from "@a2a-relay/protocol";
import { isAllowed } from "../access/authorize.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import { taskTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { parseCursor } from "../mechanisms/cursor.ts";
import { follow, type PollResult } from "../mechanisms/follow.ts";
import type { Throttle } from "../mechanisms/throttle.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import type { EventRecord, EventType } from "../ports/journal.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { visibleTask } from "./task-view.ts";
import { eventDataOf } from "../mechanisms/stored-json.ts";

/** Events of a task, and the cursor after the last of them. */
export interface TaskEventsPage {
  readonly events: readonly TaskEventView[];
  readonly cursor: string;
}

export interface TaskEventsParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly throttle: Throttle;
  readonly waitQuota: WaitQuota;
}

const parseQuery = parserOf(TaskEventsQuerySchema, "query");

const ENDINGS: ReadonlySet<EventType> = new Set<EventType>([
  "task.completed",
  "task.failed",
  "task.canceled",
  "task.rejected",
  "task.replayed",
]);

/** Follows the journal events of one task up to its end. */
export class TaskEvents {
  readonly #parts: TaskEventsParts;
  readonly #heartbeatMs: number;

  constructor(parts: TaskEventsParts, settings: { readonly heartbeatMs: number }) {
    this.#parts = parts;
    this.#heartbeatMs = settings.heartbeatMs;
  }

  async follow(
    principal: Principal,
    id: string,
    input: unknown,
    { signal }: WaitOptions,
  ): Promise<AsyncIterable<TaskEventsPage>> {
    const query: TaskEventsQuery = parseQuery(input);
    let afterSeq = parseCursor(query.since, "since");
    const { tenant, id: taskId } = await visibleTask(this.#parts, principal, id, allParties);
    const { clock, guard, throttle, waitQuota } = this.#parts;
    return follow({
      watch: waitQuota.watch(principal, taskTopic(tenant, taskId)),
      clock,
      throttle,
      heartbeatMs: this.#heartbeatMs,
      signal,
      poll: async () => {
        const { seq, ...result } = await this.#poll(principal, taskId, afterSeq);
        afterSeq = seq;
        return result;
      },
      assertAllowed: () => guard.assertStillValid(principal),
    });
  }

  async #poll(
    principal: Principal,
    taskId: string,
    afterSeq: number,
  ): Promise<PollResult<TaskEventsPage> & { readonly seq: number }> {
    const [task] = await this.#parts.store.tasks.get(principal.tenant, [taskId]);
    const untilSeq = task === undefined ? 0 : await this.#untilSeq(principal, task);
    if (task === undefined || untilSeq <= afterSeq) {
      const page = { events: [], cursor: String(afterSeq) };
      return { page, seq: afterSeq, isEmpty: true, isLast: true };
    }
    const { events, lastSeq, hasMore } = await this.#eventsAfter(task, afterSeq);
    const end = events.findIndex(({ type, seq }) => ENDINGS.has(type) || seq === untilSeq);
    const isLast = end !== -1 || (isTerminal(task.state) && !hasMore);
    // Events after the end are about the delivery of the result.
    const untilEnd = isLast ? events.slice(0, end + 1) : events;
    const seq = isLast ? (untilEnd.at(-1)?.seq ?? lastSeq) : lastSeq;
    const page = { events: untilEnd.map(viewTaskEvent), cursor: String(seq) };
    return { page, seq, isEmpty: untilEnd.length === 0, hasMore, isLast };
  }

  /** The last event that the caller may read: an agent that handed the task over reads up to its handoff. */
  async #untilSeq(principal: Principal, task: TaskRecord): Promise<number> {
    const { tenant, id: taskId, handoffs, requester, assignee } = task;
    if (isAllowed(principal, "tasks.read", { parties: [requester, assignee] })) return Infinity;
    if (principal.kind === "operator") return 0;
    const { events } = await this.#parts.store.journal.events({
      tenant,
      type: "task.handed_off",
      agentId: principal.agentId,
      threadId: undefined,
      taskId,
      afterSeq: 0,
      limit: handoffs.length,
      scanRowsMax: LIMITS.scanRowsMax,
    });
    return events.findLast(({ actor }) => actor === principal.agentId)?.seq ?? 0;
  }

  /** Skips pages without events about the task, until it finds some or reaches the end of the journal. */
  async #eventsAfter(
    task: TaskRecord,
    afterSeq: number,
  ): Promise<{
    readonly events: readonly EventRecord[];
    readonly lastSeq: number;
    readonly hasMore: boolean;
  }> {
    const { store, throttle } = this.#parts;
    const filter = {
      tenant: task.tenant,
      type: undefined,
      agentId: undefined,
      threadId: undefined,
      taskId: task.id,
      limit: LIMITS.streamPageMessagesMax,
      scanRowsMax: LIMITS.scanRowsMax,
    };
    for (let seq = afterSeq; ;) {
      const { events, lastSeq, hasMore } = await store.journal.events({ ...filter, afterSeq: seq });
      const ofTask = events.filter(isAboutTask);
      if (ofTask.length > 0 || !hasMore) return { events: ofTask, lastSeq, hasMore };
      seq = lastSeq;
      await throttle.step();
    }
  }
}

/** The requester, the assignee and all agents that handed the task over. */
function allParties({ requester, assignee, handoffs }: TaskRecord): readonly AgentId[] {
  return [requester, assignee, ...handoffs.map(({ from }) => from as AgentId)];
}

/** Events about access are for operators only. */
function isAboutTask({ type }: EventRecord): boolean {
  return type.startsWith("task.") || type.startsWith("message.");
}

/** Leaves out the lease id, which only its holder may know. */
function viewTaskEvent(event: EventRecord): TaskEventView {
  const { lease_id: _, ...data } = eventDataOf(event);
  return {
    seq: event.seq,
    type: event.type,
    at: formatInstant(event.atMs),
    actor: event.actor,
    ...(event.agentId === null ? {} : { agent: event.agentId }),
    ...(event.messageId === null ? {} : { message_id: event.messageId }),
    task_id: event.taskId ?? "",
    data,
  };
}
