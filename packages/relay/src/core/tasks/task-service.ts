import {
  type Artifact,
  GUEST,
  isTerminal,
  LIMITS,
  POSTMASTER,
  TaskArtifactRequestSchema,
  type TaskCancelRequest,
  TaskCancelRequestSchema,
  type TaskCompleteRequest,
  TaskCompleteRequestSchema,
  TaskFailRequestSchema,
  TaskStatusRequestSchema,
  type TasksQuery,
  TasksQuerySchema,
  type TasksResponse,
  type TaskTreeView,
  type TaskView,
  textOfParts,
} from "@a2a-relay/protocol";
import type { CapabilityGate, GatePass } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit, type Decision, type RunExclusive } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import { timeDigits } from "../mechanisms/time-ordered-ids.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { ServiceParts } from "../service-parts.ts";
import { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { CANCELED_REASON } from "../rules/delivery-state.ts";
import { isStillRegistered, withdrawnChanges } from "../rules/undelivered.ts";
import { canceledNotice, type MessageDefaults } from "../rules/notices.ts";
import { assertArtifactBytes, putArtifact, readArtifact, withArtifacts } from "./artifacts.ts";
import { acknowledgeWork, assertHoldsTask, taskEvent, workDeliveries } from "../rules/task-changes.ts";
import { TaskEvents, type TaskEventsPage } from "./task-events.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { askRequester, type Ending, endingDigest, endTask, STATUS_TEXT_CHARS } from "../rules/task-result.ts";
import { assertInTime, assertUnfinished, moveTask } from "../rules/task-state.ts";
import { taskTree } from "./task-tree.ts";
import { artifactStep, statusStep } from "./task-step.ts";
import { tell, tellEnd, wholeArtifact } from "../rules/task-update.ts";
import { summarizeTask, viewTask } from "./task-view.ts";
import { visibleTask } from "./visible-task.ts";

const parseStatus = parserOf(TaskStatusRequestSchema, "status");
const parseArtifact = parserOf(TaskArtifactRequestSchema, "artifact");
const parseComplete = parserOf(TaskCompleteRequestSchema, "complete");
const parseFail = parserOf(TaskFailRequestSchema, "fail");
const parseCancel = parserOf(TaskCancelRequestSchema, "cancel");
const parseTasks = parserOf(TasksQuerySchema, "query");

export interface TaskSettings {
  readonly messageTtlMs: number;
  /** How often a stream without events gives a sign of life. */
  readonly heartbeatMs: number;
}

/** What the agent that works on a task does with it, and what its requester may ask. */
export class TaskService {
  readonly #parts: ServiceParts;
  readonly #events: TaskEvents;
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #gate: CapabilityGate;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #messageTtlMs: number;
  readonly #turns: KeyedMutex;
  readonly #capabilityMutex: KeyedMutex;

  constructor(parts: ServiceParts, settings: TaskSettings) {
    this.#parts = parts;
    this.#events = new TaskEvents(parts, settings);
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#gate = parts.gate;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#messageTtlMs = settings.messageTtlMs;
    this.#turns = new KeyedMutex(parts.clock);
    this.#capabilityMutex = parts.capabilityMutex;
  }

  async get(principal: Principal, id: string): Promise<TaskView> {
    const task = await visibleTask(this.#parts, principal, id);
    return this.#view(task);
  }

  /** What happened to the task and what will, page by page, to its end. Refuses before the first page. */
  follow(...asked: Parameters<TaskEvents["follow"]>): Promise<AsyncIterable<TaskEventsPage>> {
    return this.#events.follow(...asked);
  }

  async list(principal: Principal, input: unknown): Promise<TasksResponse> {
    const query = parseTasks(input) as TasksQuery;
    const { tenant } = principal;
    const asked =
      query.agent === undefined ? undefined : await this.#directory.resolve(tenant, query.agent, "agent");
    const agentId = asked ?? (principal.kind === "agent" ? principal.agentId : undefined);
    await this.#guard.authorize(principal, "tasks.list", agentId === undefined ? {} : { agentId });
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const tasks = await this.#store.tasks({
      tenant,
      agentId,
      state: query.state,
      threadId: query.thread_id,
      parentId: query.parent,
      afterId: await this.#startOf(principal, query.since ?? ""),
      limit,
    });
    const last = tasks.length === limit ? tasks.at(-1) : undefined;
    const counts = await this.#countArtifacts(tenant, tasks);
    return {
      tasks: tasks.map((task) => summarizeTask(task, counts.get(task.id) ?? 0)),
      ...(last === undefined ? {} : { cursor: last.id }),
    };
  }

  /** The task and what came of it, as far as the caller takes part in it, to a bounded size. */
  async tree(principal: Principal, id: string): Promise<TaskTreeView> {
    const root = await visibleTask(this.#parts, principal, id);
    return taskTree(this.#store, principal, root);
  }

  /** Progress is seen on the task; a question is also mail, because somebody must hear it to answer. */
  async reportStatus(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const request = parseStatus(input);
    const text = request.text ?? textOfParts(request.parts ?? []);
    return this.#work(principal, id, request.lease_id, (task, _mail, defaults) => {
      const { nowMs } = defaults;
      const statusText = text === "" ? null : text.slice(0, STATUS_TEXT_CHARS).toWellFormed();
      const { state, parts } = request;
      const moved = { ...moveTask(task, state, nowMs), statusText };
      const isQuestion = state !== "working" && task.requester !== GUEST;
      const question = isQuestion ? askRequester(moved, { text, parts }, defaults) : undefined;
      const told = tell(moved, [statusStep(request, text, question?.message.id)], nowMs);
      const change = { ...told.changes, tasks: [told.task], events: [taskEvent(moved, task.assignee, {})] };
      return { task: told.task, changes: question === undefined ? [change] : [change, question.changes] };
    });
  }

  /** Artifacts are kept as they come; the journal gets their digest with the end of the task. */
  async addArtifact(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const request = parseArtifact(input);
    return this.#work(principal, id, request.lease_id, (task, _mail, { nowMs }, known) => {
      const next = readArtifact(request.artifact, () => this.#ids.task());
      const append = request.append === true;
      const artifact = putArtifact(known, next, append);
      const told = tell({ ...task, updatedAtMs: nowMs }, [artifactStep(request, next)], nowMs);
      const artifacts = [{ tenant: task.tenant, taskId: task.id, artifact }];
      return { task: told.task, changes: [{ ...told.changes, tasks: [told.task], artifacts }] };
    });
  }

  async complete(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const request: TaskCompleteRequest = parseComplete(input ?? {});
    const { lease_id: leaseId, ...content } = request;
    const artifacts = (request.artifacts ?? []).map((each) => readArtifact(each, () => this.#ids.task()));
    const text =
      request.text ?? (textOfParts(request.parts ?? artifacts.flatMap(({ parts }) => parts)) || "done");
    return this.#end(principal, id, leaseId, artifacts, {
      state: "completed",
      resultStatus: request.result_status ?? "ok",
      text,
      parts: request.parts,
      a2aMessage: request.a2a_message,
      metadata: request.metadata,
      isPlain: request.plain,
      digest: endingDigest("completed", content),
    });
  }

  async fail(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    return this.#endBadly(principal, id, input, "failed");
  }

  async reject(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    return this.#endBadly(principal, id, input, "rejected");
  }

  /** The same for a wire whose results have a shape of their own. */
  async end(
    principal: Principal,
    id: string,
    leaseId: string | undefined,
    how: Omit<Ending, "actor" | "sender">,
  ): Promise<TaskView> {
    return this.#end(principal, id, leaseId, [], how);
  }

  /** Final at once: open mail is withdrawn and whoever holds the work is told. Canceling twice is harmless. */
  async cancel(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const request: TaskCancelRequest = parseCancel(input ?? {});
    const reason = request.reason ?? "its requester no longer needs it";
    return this.#decide(principal, id, async (task) => {
      await this.#guard.authorize(principal, "tasks.cancel", { agentId: task.requester });
      if (task.state === "canceled") return { changes: undefined, answer: await this.#view(task) };
      assertUnfinished(task);
      const defaults = this.#defaults();
      const mail = workDeliveries(task, await this.#store.openDeliveriesOfTask(task.tenant, task.id));
      const actor = principal.kind === "agent" ? principal.agentId : task.requester;
      const ended = await this.#ended(
        task,
        defaults,
        {
          state: "canceled",
          resultStatus: "error",
          text: reason,
          parts: undefined,
          digest: endingDigest("canceled", {}),
          actor,
          sender: POSTMASTER,
        },
        await this.#store.artifacts(task.tenant, task.id),
      );
      const held = mail.some((delivery) => delivery.state === "leased");
      const withdrawn = await withdrawnChanges(this.#store, defaults, task, mail, actor, CANCELED_REASON);
      const parts = [...withdrawn, ended.changes];
      if (held) parts.push(canceledNotice(defaults, task, reason).changes);
      return { changes: combine(task.tenant, parts), answer: await this.#view(ended.task) };
    });
  }

  async #endBadly(
    principal: Principal,
    id: string,
    input: unknown,
    state: "failed" | "rejected",
  ): Promise<TaskView> {
    const { lease_id: leaseId, ...content } = parseFail(input);
    const { reason, parts, metadata, a2a_message: a2aMessage } = content;
    const ending = {
      state,
      resultStatus: "error",
      text: reason,
      parts,
      metadata,
      a2aMessage,
      digest: endingDigest(state, content),
    } as const;
    return this.#end(principal, id, leaseId, [], ending);
  }

  /** One ending is accepted; the same one again is answered as before, another one is refused. */
  async #end(
    principal: Principal,
    id: string,
    leaseId: string | undefined,
    artifacts: readonly Artifact[],
    how: Omit<Ending, "actor" | "sender">,
  ): Promise<TaskView> {
    return this.#decide(principal, id, async (task) => {
      await this.#guard.authorize(principal, "tasks.work", { agentId: task.assignee });
      if (isTerminal(task.state) && task.state === how.state && task.resultDigest === how.digest) {
        return { changes: undefined, answer: await this.#view(task) };
      }
      const pass = await this.#mayRespond(principal, task, leaseId);
      const { mail, defaults, known } = await this.#grip(task, leaseId);
      const put: Artifact[] = [];
      for (const each of artifacts) put.push(putArtifact(withArtifacts(known, put), each, false));
      const all = withArtifacts(known, put);
      if (put.length > 0) assertArtifactBytes(all);
      const ending: Ending = { ...how, actor: task.assignee, sender: task.assignee };
      const shown = tellEnd(task, put.map(wholeArtifact), defaults.nowMs);
      const ended = await this.#ended(shown.task, defaults, ending, all);
      const changes = combine(task.tenant, [
        pass,
        acknowledgeWork(task, mail, task.assignee, defaults.nowMs),
        shown.changes,
        ended.changes,
        { artifacts: put.map((artifact) => ({ tenant: task.tenant, taskId: task.id, artifact })) },
      ]);
      return { changes, answer: viewTask(ended.task, all) };
    });
  }

  async #work(
    principal: Principal,
    id: string,
    leaseId: string | undefined,
    rule: (
      task: TaskRecord,
      mail: readonly DeliveryRecord[],
      defaults: MessageDefaults,
      known: readonly Artifact[],
    ) => { readonly task: TaskRecord; readonly changes: readonly Partial<Changes>[] },
  ): Promise<TaskView> {
    return this.#decide(principal, id, async (task) => {
      await this.#guard.authorize(principal, "tasks.work", { agentId: task.assignee });
      const pass = await this.#mayRespond(principal, task, leaseId);
      const { mail, defaults, known } = await this.#grip(task, leaseId);
      const { task: moved, changes } = rule(task, mail, defaults, known);
      const put = changes.flatMap((part) => part.artifacts ?? []).map(({ artifact }) => artifact);
      const all = withArtifacts(known, put);
      if (put.length > 0) assertArtifactBytes(all);
      return { changes: combine(task.tenant, [pass, ...changes]), answer: viewTask(moved, all) };
    });
  }

  /** One change of a task after another; only other processes, mail and sweeps can come in between. */
  async #decide(
    principal: Principal,
    id: string,
    decide: (task: TaskRecord) => Promise<Decision<TaskView>>,
  ): Promise<TaskView> {
    let requester = "";
    // Whose task it is is known only once it was looked at.
    const spendExclusively: RunExclusive = (again) =>
      this.#capabilityMutex.at(principal.tenant, requester)(again);
    const decideOn = async (): Promise<Decision<TaskView>> => {
      const task = await visibleTask(this.#parts, principal, id);
      ({ requester } = task);
      return decide(task);
    };
    return this.#turns.run(JSON.stringify([principal.tenant, id]), () =>
      decideAndCommit(this.#store, decideOn, spendExclusively),
    );
  }

  #mayRespond(principal: Principal, task: TaskRecord, leaseId: string | undefined): Promise<GatePass> {
    const { id: taskId, clientId: clientTaskId, assignee: responder, requester } = task;
    const demand = { kind: "respond", responder, requester, taskId, clientTaskId, leaseId } as const;
    return this.#gate.pass(principal, demand);
  }

  /** The task can be worked on now, and by this caller. */
  async #grip(
    task: TaskRecord,
    leaseId: string | undefined,
  ): Promise<{
    readonly mail: readonly DeliveryRecord[];
    readonly defaults: MessageDefaults;
    readonly known: readonly Artifact[];
  }> {
    const defaults = this.#defaults();
    assertUnfinished(task);
    assertInTime(task, defaults.nowMs);
    const mail = workDeliveries(task, await this.#store.openDeliveriesOfTask(task.tenant, task.id));
    assertHoldsTask(mail, await this.#store.delivery(task.tenant, task.messageId), leaseId);
    return { mail, defaults, known: await this.#store.artifacts(task.tenant, task.id) };
  }

  async #ended(
    task: TaskRecord,
    defaults: MessageDefaults,
    ending: Ending,
    artifacts: readonly Artifact[],
  ): Promise<ReturnType<typeof endTask>> {
    const registered = await isStillRegistered(this.#store, task.tenant, task.requester, task.createdAtMs);
    return endTask(task, ending, defaults, registered, artifacts);
  }

  /** Ids begin with the time, so what an earlier owner of the caller's id had lies before all that is its own. */
  async #startOf(principal: Principal, since: string): Promise<string> {
    if (principal.kind === "operator") return since;
    const othersBeforeMs = await this.#store.othersBeforeMs(principal.tenant, principal.agentId);
    if (othersBeforeMs === 0) return since;
    const start = timeDigits(othersBeforeMs);
    return since > start ? since : start;
  }

  #defaults(): MessageDefaults {
    return { ids: this.#ids, nowMs: this.#clock.nowMs(), messageTtlMs: this.#messageTtlMs };
  }

  async #countArtifacts(tenant: string, tasks: readonly TaskRecord[]): Promise<ReadonlyMap<string, number>> {
    return this.#store.countArtifacts(
      tenant,
      tasks.map(({ id }) => id),
    );
  }

  async #view(task: TaskRecord): Promise<TaskView> {
    return viewTask(task, await this.#store.artifacts(task.tenant, task.id));
  }
}
