import {
  type Artifact,
  LIMITS,
  TaskArtifactRequestSchema,
  TaskCancelRequestSchema,
  TaskCompleteRequestSchema,
  TaskFailRequestSchema,
  TaskStatusRequestSchema,
  TasksQuerySchema,
  type TasksResponse,
  type TaskTreeView,
  type TaskView,
  textOfParts,
} from "@a2a-relay/protocol";
import type { CapabilityGate } from "../access/capability-gate.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import { decideAndCommit, type Decision, type RunExclusive } from "../mechanisms/commit-retry.ts";
import { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import { timeDigits } from "../mechanisms/time-ordered-ids.ts";
import type { Claim } from "../ports/claims.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { CANCELED_REASON } from "../rules/delivery-state.ts";
import type { MessageDefaults } from "../rules/notices.ts";
import { workDeliveries } from "../rules/task-changes.ts";
import { endingDigest } from "../rules/task-result.ts";
import { isStillRegistered, withdrawnChanges } from "../rules/undelivered.ts";
import { readArtifact } from "./artifacts.ts";
import {
  type CancelWork,
  decideArtifact,
  decideCancel,
  decideEnding,
  decideStatus,
  isRepeatedEnding,
  type RequestedEnding,
  type TaskWork,
} from "./task-decisions.ts";
import { TaskEvents, type TaskEventsPage, type TaskEventsParts } from "./task-events.ts";
import { summarizeTask, taskTree, viewTask, visibleTask } from "./task-view.ts";
import { ownedSinceMs } from "../rules/agent-owner.ts";

const parseStatus = parserOf(TaskStatusRequestSchema, "status");
const parseArtifact = parserOf(TaskArtifactRequestSchema, "artifact");
const parseComplete = parserOf(TaskCompleteRequestSchema, "complete");
const parseFail = parserOf(TaskFailRequestSchema, "fail");
const parseCancel = parserOf(TaskCancelRequestSchema, "cancel");
const parseTasks = parserOf(TasksQuerySchema, "query");

export interface TaskParts extends TaskEventsParts {
  readonly gate: CapabilityGate;
  readonly directory: Directory;
  readonly ids: Identifiers;
  /** Serialises callers that spend the same capability, by the agent that it is about. */
  readonly capabilityMutex: KeyedMutex;
}

export interface TaskSettings {
  readonly messageTtlMs: number;
  /** How often a stream without events sends an empty page. */
  readonly heartbeatMs: number;
}

/** What the assignee of a task reports and what its requester may read and cancel. */
export class TaskService {
  readonly #parts: TaskParts;
  readonly #events: TaskEvents;
  readonly #settings: TaskSettings;
  readonly #claims: readonly Claim[];
  /** Saves retries: of the changes of one task, only those of other rooms and relays clash with each other. */
  readonly #taskMutex: KeyedMutex;

  constructor(parts: TaskParts, settings: TaskSettings, claims: readonly Claim[] = []) {
    this.#parts = parts;
    this.#events = new TaskEvents(parts, settings);
    this.#settings = settings;
    this.#claims = claims;
    this.#taskMutex = new KeyedMutex(parts.clock);
  }

  /** The same service for background work: once the claim is lost, it writes nothing (`ClaimLost`). */
  under(claim: Claim): TaskService {
    return new TaskService(this.#parts, this.#settings, [claim]);
  }

  async get(principal: Principal, id: string): Promise<TaskView> {
    return this.#view(await visibleTask(this.#parts, principal, id));
  }

  /** All events of the task, page by page, up to its end. Refuses before the first page. */
  follow(...request: Parameters<TaskEvents["follow"]>): Promise<AsyncIterable<TaskEventsPage>> {
    return this.#events.follow(...request);
  }

  async list(principal: Principal, input: unknown): Promise<TasksResponse> {
    const query = parseTasks(input);
    const { store, guard, directory } = this.#parts;
    const { tenant } = principal;
    const own = principal.kind === "agent" ? principal.agentId : undefined;
    const agentId = query.agent === undefined ? own : await directory.resolve(tenant, query.agent, "agent");
    await guard.authorize(principal, "tasks.list", agentId === undefined ? {} : { agentId });
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const tasks = await store.tasks.list({
      tenant,
      agentId,
      state: query.state,
      threadId: query.thread_id,
      parentId: query.parent,
      afterId: await this.#firstOwnId(principal, query.since ?? ""),
      limit,
    });
    const last = tasks.length === limit ? tasks.at(-1) : undefined;
    const ids = tasks.map(({ id }) => id);
    const counts = await store.tasks.countArtifacts(tenant, ids);
    return {
      tasks: tasks.map((task) => summarizeTask(task, counts.get(task.id) ?? 0)),
      ...(last === undefined ? {} : { cursor: last.id }),
    };
  }

  async tree(principal: Principal, id: string): Promise<TaskTreeView> {
    const root = await visibleTask(this.#parts, principal, id);
    return taskTree(this.#parts.store, principal, root);
  }

  async reportStatus(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const request = parseStatus(input);
    return this.#commit(principal, id, async () => {
      const task = await this.#authorizedWork(principal, id);
      return decideStatus(await this.#loadWork(principal, task, request.lease_id), request);
    });
  }

  async addArtifact(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const request = parseArtifact(input);
    const artifact = readArtifact(request.artifact, () => this.#parts.ids.task());
    return this.#commit(principal, id, async () => {
      const task = await this.#authorizedWork(principal, id);
      return decideArtifact(await this.#loadWork(principal, task, request.lease_id), request, artifact);
    });
  }

  async complete(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const { lease_id: leaseId, ...content } = parseComplete(input ?? {});
    const artifacts = (content.artifacts ?? []).map((each) =>
      readArtifact(each, () => this.#parts.ids.task()),
    );
    const parts = content.parts ?? artifacts.flatMap((artifact) => artifact.parts);
    const ending = {
      state: "completed",
      resultStatus: content.result_status ?? "ok",
      text: content.text ?? (textOfParts(parts) || "done"),
      parts: content.parts,
      a2aMessage: content.a2a_message,
      metadata: content.metadata,
      isPlain: content.plain,
      digest: endingDigest("completed", content),
    } as const;
    return this.end(principal, id, leaseId, ending, artifacts);
  }

  async fail(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const { lease_id: leaseId, ...content } = parseFail(input);
    return this.end(principal, id, leaseId, unsuccessful("failed", content));
  }

  async reject(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const { lease_id: leaseId, ...content } = parseFail(input);
    return this.end(principal, id, leaseId, unsuccessful("rejected", content));
  }

  /** Accepts the first ending. The same ending again gets the same answer; another one is refused. */
  async end(
    principal: Principal,
    id: string,
    leaseId: string | undefined,
    ending: RequestedEnding,
    artifacts: readonly Artifact[] = [],
  ): Promise<TaskView> {
    return this.#commit(principal, id, async () => {
      const task = await this.#authorizedWork(principal, id);
      if (isRepeatedEnding(task, ending)) return { changes: undefined, answer: await this.#view(task) };
      const work = await this.#loadWork(principal, task, leaseId);
      return decideEnding(work, ending, artifacts, await this.#requesterIsRegistered(task));
    });
  }

  /** Canceling a canceled task changes nothing. */
  async cancel(principal: Principal, id: string, input: unknown): Promise<TaskView> {
    const { reason = "its requester no longer needs it" } = parseCancel(input ?? {});
    return this.#commit(principal, id, async () => {
      const task = await visibleTask(this.#parts, principal, id);
      await this.#parts.guard.authorize(principal, "tasks.cancel", { agentId: task.requester });
      if (task.state === "canceled") return { changes: undefined, answer: await this.#view(task) };
      return decideCancel(await this.#loadCancel(principal, task), reason);
    });
  }

  /** The task, if the caller may report on it. */
  async #authorizedWork(principal: Principal, id: string): Promise<TaskRecord> {
    const task = await visibleTask(this.#parts, principal, id);
    await this.#parts.guard.authorize(principal, "tasks.work", { agentId: task.assignee });
    return task;
  }

  async #loadWork(principal: Principal, task: TaskRecord, leaseId: string | undefined): Promise<TaskWork> {
    const { store, gate } = this.#parts;
    const { tenant, id: taskId, clientId: clientTaskId, assignee: responder, requester } = task;
    const demand = { kind: "respond", responder, requester, taskId, clientTaskId, leaseId } as const;
    return {
      task,
      leaseId,
      pass: await gate.pass(principal, demand),
      openDeliveries: await store.deliveries.openOfTasks(tenant, [taskId]),
      requestDelivery: (await store.deliveries.get(tenant, [task.messageId]))[0],
      artifacts: await store.tasks.artifacts(tenant, taskId),
      defaults: this.#defaults(),
    };
  }

  async #loadCancel(principal: Principal, task: TaskRecord): Promise<CancelWork> {
    const { store } = this.#parts;
    const { tenant, id: taskId } = task;
    const defaults = this.#defaults();
    const deliveries = workDeliveries(task, await store.deliveries.openOfTasks(tenant, [taskId]));
    const actor = principal.kind === "agent" ? principal.agentId : task.requester;
    return {
      task,
      deliveries,
      withdrawn: await withdrawnChanges(store, defaults, task, deliveries, actor, CANCELED_REASON),
      artifacts: await store.tasks.artifacts(tenant, taskId),
      requesterIsRegistered: await this.#requesterIsRegistered(task),
      actor,
      defaults,
    };
  }

  #requesterIsRegistered({ tenant, requester, createdAtMs }: TaskRecord): Promise<boolean> {
    return isStillRegistered(this.#parts.store, tenant, requester, createdAtMs);
  }

  #commit({ tenant }: Principal, id: string, decide: () => Promise<Decision<TaskView>>): Promise<TaskView> {
    const { store, capabilityMutex } = this.#parts;
    const spendExclusively: RunExclusive = async (act) => {
      const [task] = await store.tasks.get(tenant, [id]);
      return capabilityMutex.at(tenant, task?.requester ?? "")(act);
    };
    const decideClaimed = async (): Promise<Decision<TaskView>> => {
      const { changes, answer } = await decide();
      return { changes: changes && { ...changes, claims: this.#claims }, answer };
    };
    return this.#taskMutex.at(tenant, id)(() => decideAndCommit(store, decideClaimed, spendExclusively));
  }

  /** Task ids begin with their time, so those of an earlier owner of the caller's id sort before the caller's own. */
  async #firstOwnId(principal: Principal, since: string): Promise<string> {
    if (principal.kind === "operator") return since;
    const othersBeforeMs = await ownedSinceMs(this.#parts.store, principal.tenant, principal.agentId);
    if (othersBeforeMs === 0) return since;
    const start = timeDigits(othersBeforeMs);
    return since > start ? since : start;
  }

  #defaults(): MessageDefaults {
    const { ids, clock } = this.#parts;
    return { ids, nowMs: clock.nowMs(), messageTtlMs: this.#settings.messageTtlMs };
  }

  async #view(task: TaskRecord): Promise<TaskView> {
    return viewTask(task, await this.#parts.store.tasks.artifacts(task.tenant, task.id));
  }
}

function unsuccessful(
  state: "failed" | "rejected",
  content: Omit<ReturnType<typeof parseFail>, "lease_id">,
): RequestedEnding {
  const { reason: text, parts, metadata, a2a_message: a2aMessage } = content;
  const digest = endingDigest(state, content);
  return { state, resultStatus: "error", text, parts, metadata, a2aMessage, digest };
}
