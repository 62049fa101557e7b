import {
  A2aError,
  type A2aSendResult,
  type A2aTask,
  type A2aTaskList,
  type A2aVersion,
  type AgentCard,
  type AgentId,
  GUEST,
  isTerminal,
  parseInstant,
  readTaskState,
  RelayError,
  type TaskState,
} from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import { taskTopic } from "../environment/change-feed.ts";
import type { ServiceParts } from "../environment/service-parts.ts";
import type { Waiting } from "../environment/waiting.ts";
import type { MessageService } from "../messages/message-service.ts";
import type { SendAnswer } from "../messages/send-planner.ts";
import type { TaskRecord } from "../tasks/task-record.ts";
import type { TaskService } from "../tasks/task-service.ts";
import type { A2aCaller } from "./a2a-caller.ts";
import { begunTask, letterOf, namingOf } from "./a2a-letter.ts";
import type { A2aPushService } from "./a2a-push-service.ts";
import {
  type A2aListRequest,
  type A2aSendRequest,
  parseList,
  parseSend,
  parseTaskRequest,
  readPageToken,
  writePageToken,
} from "./a2a-request.ts";
import { type A2aFollowing, type A2aPage, A2aStreams } from "./a2a-streams.ts";
import { type A2aTasks, noTask } from "./a2a-tasks.ts";
import { assertAnswer } from "./agent-answer.ts";
import { type AgentTerms, assertTerms, termsOf } from "./agent-terms.ts";
import { TaskStory } from "./task-story.ts";

export interface A2aSettings {
  /** How long a send waits for its task before it answers with the task as it stands. */
  readonly a2aBlockMs: number;
  readonly heartbeatMs: number;
}

interface A2aParts extends ServiceParts {
  readonly messages: MessageService;
  readonly tasks: TaskService;
  readonly a2aTasks: A2aTasks;
  readonly a2aPushes: A2aPushService;
}

/** A task that its caller was told of. */
interface Asked {
  readonly taskId: string;
  /** What was answered, where it is the first that is known of the task. */
  readonly begun: A2aTask | undefined;
}

const NO_CARD: AgentCard = {};
const LIST_DEFAULT = 50;
const LIST_MAX = 100;

/** What a standard A2A caller may ask of any agent, whether or not that agent is there. */
export class A2aService {
  readonly #parts: A2aParts;
  readonly #settings: A2aSettings;
  readonly #story: TaskStory;
  readonly #streams: A2aStreams;

  constructor(parts: A2aParts, settings: A2aSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#story = new TaskStory(parts.store);
    this.#streams = new A2aStreams({ ...parts, story: this.#story }, settings);
  }

  /** The agent that is meant by the name in a path or a field. */
  resolve(principal: Principal, name: string): Promise<AgentId> {
    return this.#parts.directory.resolveRecipient(principal.tenant, name, "agent");
  }

  async isNamedByCaller(principal: Principal, taskId: string): Promise<boolean> {
    return (await this.#parts.a2aTasks.named({ principal, version: "0.1" }, taskId)) !== undefined;
  }

  /** Waits for the end of the task, or for a question, as long as the caller and the relay's patience allow. */
  async send(caller: A2aCaller, params: unknown, waiting: Waiting): Promise<A2aSendResult> {
    const request = parseSend(params);
    const { returnImmediately = false, historyLength } = request.configuration ?? {};
    const asked = await this.#ask(caller, request);
    if (returnImmediately)
      return { task: asked.begun ?? (await this.#told(caller, asked.taskId, historyLength)) };
    const task = await this.#settled(caller, asked.taskId, waiting);
    const message = task.isPlain ? await this.#story.plainMessage(task) : undefined;
    if (message === undefined) return { task: await this.#shown(caller, task, historyLength) };
    assertAnswer({ message });
    return { message };
  }

  /** The task as it stands, then what happens to it, until it ends or asks. Refuses before the first page. */
  async stream(caller: A2aCaller, params: unknown, waiting: Waiting): Promise<AsyncIterable<A2aPage>> {
    const request = parseSend(params);
    const { streams } = await this.#termsOf(caller);
    if (!streams)
      throw new A2aError("UnsupportedOperation", "this agent's card says that it does not stream");
    const { taskId } = await this.#ask(caller, request);
    const task = await this.#task(caller, taskId);
    const { signal } = waiting;
    return this.#streams.follow(caller.principal, task, {
      signal,
      endsAtQuestion: true,
      ...shownTo(caller, task),
    });
  }

  /** As of `stream` for a task that is known; with `afterN`, what its reader has not seen, and no more. */
  async subscribe(
    caller: A2aCaller,
    params: unknown,
    waiting: Waiting & { readonly afterN: number | undefined },
  ): Promise<AsyncIterable<A2aPage>> {
    const task = await this.#task(caller, parseTaskRequest(params).id);
    if (isTerminal(task.state) && waiting.afterN === undefined) {
      throw new A2aError(
        "UnsupportedOperation",
        `task ${task.id} is ${task.state}: there is nothing to wait for; get it instead`,
      );
    }
    const { afterN, signal } = waiting;
    if (afterN !== undefined && afterN > task.updateCount) {
      throw new RelayError("invalid_argument", `Last-Event-ID: task ${task.id} has no event ${afterN} yet`);
    }
    const following = { afterN, signal, endsAtQuestion: false, ...shownTo(caller, task) };
    return this.#streams.follow(caller.principal, task, following);
  }

  async get(caller: A2aCaller, params: unknown): Promise<A2aTask> {
    const { id, historyLength } = parseTaskRequest(params);
    return this.#told(caller, id, historyLength);
  }

  /** What the caller asked of this agent over A2A, the newest change first. */
  async list(caller: A2aCaller, params: unknown): Promise<A2aTaskList> {
    const request = parseList(params);
    const { principal, agentId } = caller;
    if (agentId === undefined) {
      throw new A2aError("UnsupportedOperation", "tasks are listed by agent: name one with the tenant field");
    }
    const requester = principal.kind === "agent" ? principal.agentId : GUEST;
    await this.#parts.guard.authorize(principal, "tasks.list", { agentId: requester });
    const pageSize = pageSizeOf(request.pageSize);
    const { tasks, hasMore, total } = await this.#parts.store.askedTasks({
      tenant: principal.tenant,
      askedOf: agentId,
      requester,
      state: stateOf(request.status),
      threadId: request.contextId === "" ? undefined : request.contextId,
      sinceMs: sinceOf(request),
      before: readPageToken(request.pageToken),
      limit: pageSize,
    });
    const shown: A2aTask[] = [];
    for (const task of tasks) {
      const told = await this.#story.tell(task, {
        historyLength: request.historyLength ?? 0,
        withArtifacts: request.includeArtifacts === true,
      });
      shown.push(named(told, task, caller));
    }
    const last = tasks.at(-1);
    const nextPageToken = hasMore && last !== undefined ? writePageToken(last) : "";
    return { tasks: shown, nextPageToken, pageSize, totalSize: total };
  }

  /** Final at once; canceling what is canceled is harmless. */
  async cancel(caller: A2aCaller, params: unknown): Promise<A2aTask> {
    const { id } = parseTaskRequest(params);
    const task = await this.#task(caller, id);
    try {
      await this.#parts.tasks.cancel(caller.principal, task.id, {});
    } catch (reason) {
      const { code, message } = RelayError.from(reason);
      if (code !== "task_finished") throw reason;
      throw new A2aError("TaskNotCancelable", message, { cause: reason });
    }
    return this.#told(caller, task.id, undefined);
  }

  async #ask(caller: A2aCaller, request: A2aSendRequest): Promise<Asked> {
    assertFromUser(request, caller.version);
    const { principal, agentId } = caller;
    const known = await this.#addedTo(caller, request);
    const to = known?.assignee ?? agentId;
    if (to === undefined) {
      throw new RelayError(
        "invalid_argument",
        "whom the message is for is not said: name the agent in metadata.relay_target_agent_id or the tenant field",
      );
    }
    const { message } = request;
    assertTerms(await this.#termsOf({ ...caller, agentId: known?.askedOf ?? to }), {
      parts: message.parts,
      extensions: caller.extensions,
    });
    const pushConfig = request.configuration?.taskPushNotificationConfig;
    const called = { ...caller, agentId: known?.askedOf ?? to };
    if (pushConfig !== undefined) await this.#parts.a2aPushes.check(called, pushConfig);
    const letter = letterOf(caller, request, { to, known });
    const naming = known === undefined ? namingOf(request, letter) : undefined;
    const answer = await this.#refusing(known, () => this.#parts.messages.ask(principal, letter, naming));
    const taskId = answer.receipt.task_id;
    if (taskId === undefined) throw new RelayError("internal", "a request made no task");
    if (pushConfig !== undefined) {
      const task = await this.#task(called, taskId);
      await this.#parts.a2aPushes.attach(called, task, pushConfig, known?.updateCount ?? 0);
    }
    return { taskId, begun: known === undefined ? begunTask(answer, caller, request) : undefined };
  }

  /** The task that the message adds to. */
  async #addedTo(caller: A2aCaller, request: A2aSendRequest): Promise<TaskRecord | undefined> {
    const { message, clientTaskId } = request;
    if (message.taskId !== undefined && message.taskId !== "") {
      const task = await this.#task(caller, message.taskId);
      if (
        message.contextId !== undefined &&
        message.contextId !== "" &&
        message.contextId !== task.threadId
      ) {
        throw new RelayError(
          "invalid_argument",
          `contextId: task ${task.id} belongs to context ${task.threadId}, not to ${message.contextId}`,
        );
      }
      return task;
    }
    return clientTaskId === undefined ? undefined : this.#parts.a2aTasks.named(caller, clientTaskId);
  }

  /** What was said to a task that is over came too late. */
  async #refusing(known: TaskRecord | undefined, act: () => Promise<SendAnswer>): Promise<SendAnswer> {
    try {
      return await act();
    } catch (reason) {
      const { code, message } = RelayError.from(reason);
      if (known === undefined || (code !== "task_finished" && code !== "task_canceled")) throw reason;
      throw new A2aError("UnsupportedOperation", message, { cause: reason });
    }
  }

  async #settled({ principal }: A2aCaller, taskId: string, { signal }: Waiting): Promise<TaskRecord> {
    const { store, clock, waiters, guard } = this.#parts;
    const { tenant } = principal;
    using watch = waiters.watch(principal, taskTopic(tenant, taskId));
    const endMs = clock.nowMs() + this.#settings.a2aBlockMs;
    for (;;) {
      const task = await store.task(tenant, taskId);
      if (task === undefined) throw noTask(taskId);
      const leftMs = endMs - clock.nowMs();
      if (isSettled(task.state) || leftMs <= 0 || signal?.aborted === true) return task;
      await watch.changed({ timeoutMs: leftMs, signal });
      await guard.assertStillKnown(principal);
    }
  }

  async #told(caller: A2aCaller, id: string, historyLength: number | undefined): Promise<A2aTask> {
    return this.#shown(caller, await this.#task(caller, id), historyLength);
  }

  async #shown(caller: A2aCaller, task: TaskRecord, historyLength: number | undefined): Promise<A2aTask> {
    const told = await this.#story.tell(task, { historyLength, withArtifacts: true });
    assertAnswer({ task: told });
    return named(told, task, caller);
  }

  #task(caller: A2aCaller, id: string): Promise<TaskRecord> {
    return this.#parts.a2aTasks.find(caller, id);
  }

  async #termsOf({ principal, agentId }: A2aCaller): Promise<AgentTerms> {
    const { store } = this.#parts;
    const card = agentId === undefined ? undefined : await store.agentCard(principal.tenant, agentId);
    return termsOf(card ?? NO_CARD);
  }
}

/** Under the name by which the caller knows it. */
function named(told: A2aTask, task: TaskRecord, caller: A2aCaller): A2aTask {
  const id = shownId(task, caller);
  return id === told.id ? told : { ...told, id };
}

/** Callers of A2A 0.1 go by the names that they gave their tasks. */
function shownId({ id, clientId }: TaskRecord, { version }: A2aCaller): string {
  return version === "0.1" && clientId !== null ? clientId : id;
}

function shownTo(caller: A2aCaller, task: TaskRecord): Pick<A2aFollowing, "numbersArtifacts" | "shownAs"> {
  return { shownAs: shownId(task, caller), numbersArtifacts: caller.version === "0.1" };
}

/** It has ended, or it waits for its requester. */
export function isSettled(state: TaskState): boolean {
  return isTerminal(state) || state === "input-required" || state === "auth-required";
}

function assertFromUser({ message }: A2aSendRequest, version: A2aVersion): void {
  const role = message.role ?? (version === "0.1" ? "ROLE_USER" : undefined);
  if (role !== "ROLE_USER" && role !== "user") {
    throw new RelayError("invalid_argument", "message.role: whoever asks is ROLE_USER");
  }
  if (message.messageId === undefined && version !== "0.1") {
    throw new RelayError(
      "invalid_argument",
      "message.messageId: is missing; give every message an id of its own",
    );
  }
}

function pageSizeOf(asked: number | undefined): number {
  if (asked === undefined || asked === 0) return LIST_DEFAULT;
  if (asked <= LIST_MAX) return asked;
  throw new RelayError("invalid_argument", `pageSize: from 1 to ${LIST_MAX}, got ${asked}`);
}

/** What libraries write for a member that nobody set. */
const UNSPECIFIED: ReadonlySet<string> = new Set(["TASK_STATE_UNSPECIFIED", "UNRECOGNIZED"]);

function stateOf(status: string | undefined): TaskState | undefined {
  if (status === undefined || status === "" || UNSPECIFIED.has(status)) return undefined;
  const state = readTaskState(status);
  if (state !== undefined) return state;
  throw new RelayError("invalid_argument", `status: "${status}" is no state of a task`);
}

function sinceOf({ statusTimestampAfter }: A2aListRequest): number {
  if (statusTimestampAfter === undefined || statusTimestampAfter === "") return 0;
  return parseInstant(statusTimestampAfter, "statusTimestampAfter");
}
