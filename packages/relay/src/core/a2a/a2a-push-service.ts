import { A2aError, type A2aPushConfig, type AgentId, LIMITS, RelayError } from "@a2a-relay/protocol";
import { actorName } from "../access/principal.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { EgressPolicy } from "../rules/egress-policy.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { A2aCaller } from "./a2a-request.ts";
import { type A2aTasks, noTask, taskIdFor } from "./a2a-tasks.ts";
import { termsOf } from "../agents/agent-terms.ts";
import type { TaskPushConfig } from "../ports/task-pushes.ts";
import {
  configAfter,
  ownerOf,
  parseConfig,
  parseCreate,
  parseList,
  parseNamed,
  readAuthentication,
  readPageToken,
  readSecret,
  taskPushEvent,
  type TaskPushWish,
  writePageToken,
} from "../outbound/task-push-config.ts";

interface A2aPushParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly egress: EgressPolicy;
  readonly a2aTasks: A2aTasks;
}

export interface A2aPushConfigList {
  readonly configs: readonly A2aPushConfig[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
}

/** A task that the caller may configure pushes for. */
interface CallersTask {
  readonly caller: A2aCaller;
  readonly task: TaskRecord;
}

/** The row that a configuration goes into. */
interface ConfigSlot {
  readonly id: string;
  /** The configuration that it replaces. */
  readonly before: TaskPushConfig | undefined;
  /** How many configurations its owner has for the task. */
  readonly ownCount: number;
}

type PutResult =
  | { readonly config: TaskPushConfig; readonly refusal?: undefined }
  | { readonly refusal: RelayError; readonly config?: undefined };

/**
 * The push configurations of A2A callers. Other parties of the task neither read nor change a caller's configuration;
 * an operator reads all of them without their secrets.
 */
export class A2aPushService {
  readonly #parts: A2aPushParts;

  constructor(parts: A2aPushParts) {
    this.#parts = parts;
  }

  /** Refuses what `attach` would refuse, before the message is sent. `task` is undefined for a new task. */
  async check(caller: A2aCaller, config: unknown, task?: TaskRecord): Promise<void> {
    await this.#assertPushed(caller, caller.agentId);
    const wish = this.#wishOf(caller, parseConfig(config));
    if (task === undefined) return;
    const refusal = refusalOf(await this.#slotOf(task, wish, task.id), wish, task);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Stores the configuration that came with a message, and pushes the updates after number `afterN`. Without an id it
   * gets the task's id, so that a repeated message adds no second one. The message is sent already, so nothing is
   * refused any more: if the limit was reached since `check`, the journal records it and nothing is pushed.
   */
  async attach(caller: A2aCaller, task: TaskRecord, config: unknown, afterN: number): Promise<void> {
    const wish = this.#wishOf(caller, parseConfig(config));
    const { refusal } = await this.#put({ caller, task }, wish, { fallbackId: task.id, afterN });
    if (refusal === undefined) return;
    const { store, clock } = this.#parts;
    const by = { actor: actorName(caller.principal), atMs: clock.nowMs() };
    const lost = { ...wish, id: wish.id === "" ? task.id : wish.id, taskId: task.id };
    const events = [taskPushEvent("push.disabled", lost, by, { state: "failed", reason: refusal.message })];
    await store.commit({ tenant: task.tenant, events });
  }

  /** Pushes all updates from now on. The same id again replaces the earlier configuration. */
  async create(caller: A2aCaller, params: unknown): Promise<A2aPushConfig> {
    const request = parseCreate(params);
    const callersTask = await this.#taskOf(caller, request.taskId);
    // Before A2A 1.0 a task had one configuration, and requests for it have no id.
    const fallbackId = caller.version === "1.0" ? this.#parts.ids.pushConfig() : callersTask.task.id;
    const { config, refusal } = await this.#put(callersTask, this.#wishOf(caller, request), { fallbackId });
    if (config === undefined) throw refusal;
    return view(callersTask, config);
  }

  async get(caller: A2aCaller, params: unknown): Promise<A2aPushConfig> {
    const { taskId, id } = parseNamed(params);
    const callersTask = await this.#taskOf(caller, taskId);
    const config = await this.#find(callersTask, id);
    if (config !== undefined) return view(callersTask, config);
    throw new A2aError("TaskNotFound", `task ${taskId} has no push configuration ${id ?? ""}`.trimEnd());
  }

  async list(caller: A2aCaller, params: unknown): Promise<A2aPushConfigList> {
    const { taskId, pageSize = 0, pageToken } = parseList(params);
    const callersTask = await this.#taskOf(caller, taskId);
    const afterId = readPageToken(pageToken);
    const left = (await this.#visible(callersTask))
      .filter(({ id }) => id > afterId)
      .toSorted((one, other) => (one.id < other.id ? -1 : 1));
    const page = pageSize === 0 ? left : left.slice(0, pageSize);
    const last = page.length < left.length ? page.at(-1) : undefined;
    return {
      configs: page.map((config) => view(callersTask, config)),
      nextPageToken: last === undefined ? "" : writePageToken(last.id),
    };
  }

  /** Deleting a missing configuration succeeds. */
  async delete(caller: A2aCaller, params: unknown): Promise<void> {
    const { taskId, id } = parseNamed(params);
    const callersTask = await this.#taskOf(caller, taskId);
    const { principal } = caller;
    await decideAndCommit(this.#parts.store, async () => {
      const config = await this.#find(callersTask, id);
      if (config === undefined) return { changes: undefined, answer: undefined };
      const by = { actor: actorName(principal), atMs: this.#parts.clock.nowMs() };
      const events = [taskPushEvent("push.removed", config, by)];
      return {
        changes: { tenant: principal.tenant, forgottenTaskPushes: [config], events },
        answer: undefined,
      };
    });
  }

  /** The check of the agent's card comes first: it does not depend on whether the task exists. */
  async #taskOf(caller: A2aCaller, taskId: string): Promise<CallersTask> {
    await this.#assertPushed(caller, caller.agentId);
    const task = await this.#parts.a2aTasks.find(caller, taskId);
    if (caller.agentId === undefined) await this.#assertPushed(caller, task.askedOf ?? task.assignee);
    return { caller, task };
  }

  async #assertPushed({ principal }: A2aCaller, agentId: AgentId | undefined): Promise<void> {
    if (agentId === undefined) return;
    const found = await this.#parts.store.agents.get(principal.tenant, agentId);
    if (found === undefined || termsOf(found.agent.card).pushes) return;
    throw new A2aError(
      "PushNotificationNotSupported",
      `the card of ${agentId} says that it does not push; get the task, or subscribe to it`,
    );
  }

  #wishOf({ principal, version }: A2aCaller, said: ReturnType<typeof parseConfig>): TaskPushWish {
    this.#parts.egress.checkUrl(said.url, "url");
    return {
      id: said.id ?? "",
      owner: ownerOf(principal),
      url: said.url,
      token: readSecret(said.token, "token"),
      ...readAuthentication(said.authentication),
      dialect: version,
    };
  }

  /** Returns a refusal instead of throwing it: `attach` only records it. */
  async #put(
    { caller, task: { tenant, id: taskId } }: CallersTask,
    wish: TaskPushWish,
    { fallbackId, afterN }: { readonly fallbackId: string; readonly afterN?: number },
  ): Promise<PutResult> {
    const { store, clock } = this.#parts;
    return decideAndCommit<PutResult>(store, async () => {
      const [task] = await store.tasks.get(tenant, [taskId]);
      if (task === undefined) return { changes: undefined, answer: { refusal: noTask(taskId) } };
      const slot = await this.#slotOf(task, wish, fallbackId);
      const refusal = refusalOf(slot, wish, task);
      if (refusal !== undefined) return { changes: undefined, answer: { refusal } };
      const nowMs = clock.nowMs();
      const at = { nowMs, afterN: afterN ?? task.updateCount };
      const config = configAfter(slot.before, { ...wish, id: slot.id }, task, at);
      const by = { actor: actorName(caller.principal), atMs: nowMs };
      const events = [taskPushEvent("push.configured", config, by)];
      return { changes: { tenant, taskPushes: [config], events }, answer: { config } };
    });
  }

  /** A configuration without an id gets `fallbackId`, or another id if a different party already uses that one. */
  async #slotOf(task: TaskRecord, { id, owner, url }: TaskPushWish, fallbackId: string): Promise<ConfigSlot> {
    const configs = await this.#parts.store.taskPushes.ofTask(task.tenant, task.id);
    const own = configs.filter((config) => config.owner === owner);
    const slotWithId = (slotId: string): ConfigSlot => ({
      id: slotId,
      before: configs.find((config) => config.id === slotId),
      ownCount: own.length,
    });
    const slot = slotWithId(id === "" ? fallbackId : id);
    if (id !== "" || slot.before === undefined || slot.before.owner === owner) return slot;
    return slotWithId(own.find((config) => config.url === url)?.id ?? this.#parts.ids.pushConfig());
  }

  async #find(callersTask: CallersTask, id: string | undefined): Promise<TaskPushConfig | undefined> {
    const { caller, task } = callersTask;
    const visible = await this.#visible(callersTask);
    if (id !== undefined && id !== "") return visible.find((config) => config.id === id);
    if (caller.version !== "1.0") return visible.find((config) => config.id === task.id) ?? visible[0];
    throw new RelayError("invalid_argument", "id: is missing; it names the push configuration");
  }

  async #visible({ caller: { principal }, task }: CallersTask): Promise<readonly TaskPushConfig[]> {
    const configs = await this.#parts.store.taskPushes.ofTask(task.tenant, task.id);
    const owner = ownerOf(principal);
    return principal.kind === "operator" ? configs : configs.filter((config) => config.owner === owner);
  }
}

function view({ caller, task }: CallersTask, config: TaskPushConfig): A2aPushConfig {
  const { id, url, token, scheme, credentials, owner } = config;
  const isOwn = owner === ownerOf(caller.principal);
  return {
    id,
    taskId: taskIdFor(caller, task),
    url,
    ...(isOwn && token !== null ? { token } : {}),
    ...(scheme === null
      ? {}
      : { authentication: { scheme, ...(isOwn && credentials !== null ? { credentials } : {}) } }),
  };
}

/** A party can neither replace another party's configuration nor have more than its own share. */
function refusalOf(
  { id, before, ownCount }: ConfigSlot,
  { owner }: TaskPushWish,
  task: TaskRecord,
): RelayError | undefined {
  if (before !== undefined) {
    if (before.owner === owner) return undefined;
    return new RelayError("conflict", `id: ${id} is another party's push configuration; choose another id`);
  }
  if (ownCount < LIMITS.pushConfigsOfTaskMax) return undefined;
  return new RelayError(
    "resource_exhausted",
    `task ${task.id} has ${LIMITS.pushConfigsOfTaskMax} push configurations of yours, the limit; delete one first`,
    { details: { limit: LIMITS.pushConfigsOfTaskMax } },
  );
}
