import { A2aError, type A2aPushConfig, type AgentId, LIMITS, RelayError } from "@a2a-relay/protocol";
import { actorName } from "../access/principal.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { EgressPolicy } from "../rules/egress-policy.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { A2aCaller } from "./a2a-caller.ts";
import { type A2aTasks, noTask } from "./a2a-tasks.ts";
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

/** Whose task it is, under the name by which the caller knows it. */
interface Named {
  readonly caller: A2aCaller;
  readonly task: TaskRecord;
}

/** Where a configuration would go. */
interface Place {
  readonly id: string;
  /** What is there. */
  readonly before: TaskPushConfig | undefined;
  /** How many its owner has. */
  readonly ownCount: number;
}

type Put =
  | { readonly config: TaskPushConfig; readonly refusal?: undefined }
  | { readonly refusal: RelayError; readonly config?: undefined };

/**
 * Where A2A callers want to be told of their tasks. What a caller made is its own: whoever else takes part in the task
 * neither sees nor changes it, and an operator sees all but the secrets of others.
 */
export class A2aPushService {
  readonly #parts: A2aPushParts;

  constructor(parts: A2aPushParts) {
    this.#parts = parts;
  }

  /**
   * Refuses what `attach` would have to refuse, before the message is accepted; `task` is the one that the message adds
   * to, and undefined where it begins one.
   */
  async check(caller: A2aCaller, config: unknown, task?: TaskRecord): Promise<void> {
    await this.#assertPushed(caller, caller.agentId);
    const wish = this.#wishOf(caller, parseConfig(config));
    if (task === undefined) return;
    const refusal = refusalOf(await this.#placeOf({ caller, task }, wish, task.id), wish, task);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * For what came with a message: tells of all that happens to the task behind update `afterN`. Without an id it gets
   * that of the task, so that a message that is sent again brings no second one. The message is on its way already, so
   * that it is refused no more: where others took the last place since the check, this is on record, and nothing is
   * told.
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

  /** Tells of all that happens from now on. The same id again takes the place of the one before. */
  async create(caller: A2aCaller, params: unknown): Promise<A2aPushConfig> {
    const request = parseCreate(params);
    const named = await this.#named(caller, request.taskId);
    // Before 1.0 a task had one configuration, which is asked for without a name.
    const fallbackId = caller.version === "1.0" ? this.#parts.ids.pushConfig() : named.task.id;
    const { config, refusal } = await this.#put(named, this.#wishOf(caller, request), { fallbackId });
    if (config === undefined) throw refusal;
    return view(named, config);
  }

  async get(caller: A2aCaller, params: unknown): Promise<A2aPushConfig> {
    const { taskId, id } = parseNamed(params);
    const named = await this.#named(caller, taskId);
    const config = await this.#find(named, id);
    if (config !== undefined) return view(named, config);
    throw new A2aError("TaskNotFound", `task ${taskId} has no push configuration ${id ?? ""}`.trimEnd());
  }

  async list(caller: A2aCaller, params: unknown): Promise<A2aPushConfigList> {
    const { taskId, pageSize = 0, pageToken } = parseList(params);
    const named = await this.#named(caller, taskId);
    const afterId = readPageToken(pageToken);
    const left = (await this.#visible(named))
      .filter(({ id }) => id > afterId)
      .toSorted((one, other) => (one.id < other.id ? -1 : 1));
    const page = pageSize === 0 ? left : left.slice(0, pageSize);
    const last = page.length < left.length ? page.at(-1) : undefined;
    return {
      configs: page.map((config) => view(named, config)),
      nextPageToken: last === undefined ? "" : writePageToken(last.id),
    };
  }

  /** One that is not there is as good as deleted. */
  async delete(caller: A2aCaller, params: unknown): Promise<void> {
    const { taskId, id } = parseNamed(params);
    const named = await this.#named(caller, taskId);
    const { principal } = caller;
    await decideAndCommit(this.#parts.store, async () => {
      const config = await this.#find(named, id);
      if (config === undefined) return { changes: undefined, answer: undefined };
      const by = { actor: actorName(principal), atMs: this.#parts.clock.nowMs() };
      const events = [taskPushEvent("push.removed", config, by)];
      return {
        changes: { tenant: principal.tenant, forgottenTaskPushes: [config], events },
        answer: undefined,
      };
    });
  }

  /** An agent that is not pushed for says so, whether or not it has the task. */
  async #named(caller: A2aCaller, taskId: string): Promise<Named> {
    await this.#assertPushed(caller, caller.agentId);
    const task = await this.#parts.a2aTasks.find(caller, taskId);
    if (caller.agentId === undefined) await this.#assertPushed(caller, task.askedOf ?? task.assignee);
    return { caller, task };
  }

  async #assertPushed({ principal }: A2aCaller, agentId: AgentId | undefined): Promise<void> {
    if (agentId === undefined) return;
    const found = await this.#parts.store.agent(principal.tenant, agentId);
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

  /** Refuses nothing by itself but a task that is gone: that is for its caller to say. */
  async #put(
    named: Named,
    wish: TaskPushWish,
    { fallbackId, afterN }: { readonly fallbackId: string; readonly afterN?: number },
  ): Promise<Put> {
    const { store, clock } = this.#parts;
    const { principal } = named.caller;
    const { tenant, id: taskId } = named.task;
    return decideAndCommit<Put>(store, async () => {
      const task = await store.task(tenant, taskId);
      if (task === undefined) return { changes: undefined, answer: { refusal: noTask(taskId) } };
      const place = await this.#placeOf(named, wish, fallbackId);
      const refusal = refusalOf(place, wish, task);
      if (refusal !== undefined) return { changes: undefined, answer: { refusal } };
      const nowMs = clock.nowMs();
      const at = { nowMs, afterN: afterN ?? task.updateCount };
      const config = configAfter(place.before, { ...wish, id: place.id }, task, at);
      const events = [taskPushEvent("push.configured", config, { actor: actorName(principal), atMs: nowMs })];
      return { changes: { tenant, taskPushes: [config], events }, answer: { config } };
    });
  }

  /** Where it goes. What was not given a name goes elsewhere if another party has the name it would get. */
  async #placeOf({ task }: Named, { id, owner, url }: TaskPushWish, fallbackId: string): Promise<Place> {
    const known = await this.#parts.store.taskPushes(task.tenant, task.id);
    const own = known.filter((config) => config.owner === owner);
    const placed = (placeId: string): Place => ({
      id: placeId,
      before: known.find((config) => config.id === placeId),
      ownCount: own.length,
    });
    const place = placed(id === "" ? fallbackId : id);
    if (id !== "" || place.before === undefined || place.before.owner === owner) return place;
    return placed(own.find((config) => config.url === url)?.id ?? this.#parts.ids.pushConfig());
  }

  async #find(named: Named, id: string | undefined): Promise<TaskPushConfig | undefined> {
    const { caller, task } = named;
    const visible = await this.#visible(named);
    if (id !== undefined && id !== "") return visible.find((config) => config.id === id);
    if (caller.version !== "1.0") return visible.find((config) => config.id === task.id) ?? visible[0];
    throw new RelayError("invalid_argument", "id: is missing; it names the push configuration");
  }

  async #visible({ caller: { principal }, task }: Named): Promise<readonly TaskPushConfig[]> {
    const configs = await this.#parts.store.taskPushes(task.tenant, task.id);
    const owner = ownerOf(principal);
    return principal.kind === "operator" ? configs : configs.filter((config) => config.owner === owner);
  }
}

function view({ caller, task }: Named, config: TaskPushConfig): A2aPushConfig {
  const { id, url, token, scheme, credentials, owner } = config;
  const isOwn = owner === ownerOf(caller.principal);
  const taskId = caller.version === "0.1" ? (task.clientId ?? task.id) : task.id;
  return {
    id,
    taskId,
    url,
    ...(isOwn && token !== null ? { token } : {}),
    ...(scheme === null
      ? {}
      : { authentication: { scheme, ...(isOwn && credentials !== null ? { credentials } : {}) } }),
  };
}

/** Nobody takes another's updates over, nor the places of others. */
function refusalOf(
  { id, before, ownCount }: Place,
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
