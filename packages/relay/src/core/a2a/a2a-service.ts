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
  LIMITS,
  RelayError,
  type TaskState,
} from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import { taskTopic } from "../ports/change-feed.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import type { MessageService } from "../messages/message-service.ts";
import type { SendResult } from "../messages/decide-send.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskService } from "../tasks/task-service.ts";
import type { A2aCaller } from "./a2a-caller.ts";
import { begunTask, messageOf, namingOf } from "./a2a-message.ts";
import type { A2aPushService } from "./a2a-push-service.ts";
import {
  type A2aSendRequest,
  pageSizeOf,
  parseList,
  parseSend,
  parseTaskRequest,
  readPageToken,
  sinceOf,
  stateOf,
  writePageToken,
} from "./a2a-request.ts";
import { type A2aFollowing, type A2aPage, A2aStreams } from "./a2a-streams.ts";
import { type A2aTasks, noTask, ownSinceMs } from "./a2a-tasks.ts";
import { assertAnswer } from "./agent-answer.ts";
import { contextOfThread, threadOfContext } from "../tasks/context-id.ts";
import { assertTerms, termsOf } from "../agents/agent-terms.ts";
import { type Shown, TaskStory } from "../tasks/task-story.ts";

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
  readonly caller: A2aCaller;
  readonly taskId: string;
  /** It was accepted now, and not some time before. */
  readonly isNew: boolean;
  /** What was answered, where it is the first that is known of the task. */
  readonly begun: A2aTask | undefined;
}

/** The id of no task: nothing ever happens to it. */
const NO_TASK = "";

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
    return (
      (await this.#parts.a2aTasks.named({ principal, version: "0.1", agentId: undefined }, taskId)) !==
      undefined
    );
  }

  /** Waits for the end of the task, or for a question, as long as the caller and the relay's patience allow. */
  async send(caller: A2aCaller, params: unknown, waiting: WaitOptions): Promise<A2aSendResult> {
    const request = parseSend(params);
    const { returnImmediately = false, historyLength } = request.configuration ?? {};
    if (returnImmediately) {
      const asked = await this.#ask(caller, request);
      const task = asked.begun ?? (await this.#shown(caller, await this.#taskOf(asked), historyLength));
      return { task };
    }
    // Whoever cannot wait is refused before anything is sent: behind it, all would be taken for refused.
    const { signal } = waiting;
    using place = this.#placeFor(caller);
    const asked = await this.#ask(caller, request);
    const task = await this.#settled(asked, { signal, place });
    const message = task.isPlain ? await this.#story.plainMessage(task) : undefined;
    if (message === undefined) return { task: await this.#shown(caller, task, historyLength) };
    assertAnswer({ message });
    return { message };
  }

  /** The task as it stands, then what happens to it, until it ends or asks. Refuses before the first page. */
  async stream(caller: A2aCaller, params: unknown, waiting: WaitOptions): Promise<AsyncIterable<A2aPage>> {
    const request = parseSend(params);
    await this.#assertStreams(caller);
    const { signal } = waiting;
    using place = this.#placeFor(caller);
    const task = await this.#taskOf(await this.#ask(caller, request));
    place[Symbol.dispose]();
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
    waiting: WaitOptions & { readonly afterN: number | undefined },
  ): Promise<AsyncIterable<A2aPage>> {
    const task = await this.#task(caller, parseTaskRequest(params).id);
    await this.#assertStreams({ ...caller, agentId: task.askedOf ?? task.assignee });
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
    const { store } = this.#parts;
    const { tasks, hasMore, total } = await store.askedTasks({
      tenant: principal.tenant,
      askedOf: agentId,
      requester,
      state: stateOf(request.status),
      threadId: threadOf(request.contextId),
      sinceMs: sinceOf(request),
      createdSinceMs: await ownSinceMs(store, principal),
      before: readPageToken(request.pageToken),
      limit: pageSize,
    });
    const shown = await this.#listed(caller, tasks, {
      historyLength: request.historyLength ?? 0,
      withArtifacts: request.includeArtifacts === true,
    });
    const last = tasks[shown.length - 1];
    const isLastPage = !hasMore && shown.length === tasks.length;
    const nextPageToken = isLastPage || last === undefined ? "" : writePageToken(last);
    return { tasks: shown, nextPageToken, pageSize, totalSize: total };
  }

  /** As many of them, in their order, as one answer has room for; at least one. */
  async #listed(caller: A2aCaller, tasks: readonly TaskRecord[], how: Shown): Promise<readonly A2aTask[]> {
    const shown: A2aTask[] = [];
    let bytes = 0;
    for (const task of tasks) {
      const told = named(await this.#story.tell(task, how), task, caller);
      bytes += Buffer.byteLength(JSON.stringify(told));
      if (bytes > LIMITS.answerBytesMax && shown.length > 0) break;
      shown.push(told);
    }
    return shown;
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
    // Most messages begin a task, and wait for nothing that they need not wait for.
    const known = namesTask(request) ? await this.#addedTo(caller, request) : undefined;
    const to = known?.assignee ?? agentId;
    if (to === undefined) {
      throw new RelayError(
        "invalid_argument",
        "whom the message is for is not said: name the agent in metadata.relay_target_agent_id or the tenant field",
      );
    }
    const called = { ...caller, agentId: known?.askedOf ?? to };
    const { parts } = request.message;
    assertTerms(termsOf(await this.#cardOf(called)), { parts, extensions: caller.extensions });
    const pushConfig = request.configuration?.taskPushNotificationConfig;
    if (pushConfig !== undefined) await this.#parts.a2aPushes.check(called, pushConfig, known);
    const message = messageOf(caller, request, { to, known });
    const about = known === undefined ? { naming: namingOf(request, message), to } : {};
    const sending = this.#parts.messages.send(principal, message, { ...about, isAsked: true });
    const answer = await (known === undefined ? sending : added(known, sending));
    const taskId = answer.receipt.task_id;
    if (taskId === undefined) throw new RelayError("internal", "a request made no task");
    const begun = known === undefined ? begunTask(answer, caller, request) : undefined;
    const asked = { caller: called, taskId, isNew: answer.created, begun };
    if (pushConfig !== undefined) await this.#attach(asked, pushConfig, known?.updateCount ?? 0);
    return asked;
  }

  /**
   * All that could be refused was checked before. What goes wrong yet does not undo the send, so it must not be
   * answered as if it did: its caller would send again.
   */
  async #attach(asked: Asked, pushConfig: unknown, afterN: number): Promise<void> {
    try {
      const task = await this.#taskOf(asked);
      await this.#parts.a2aPushes.attach(asked.caller, task, pushConfig, afterN);
    } catch (reason) {
      if (!(reason instanceof RelayError)) throw reason;
    }
  }

  /** What was asked just now is its caller's own; what had been asked before is looked at like any other task. */
  async #taskOf({ caller, taskId, isNew }: Asked): Promise<TaskRecord> {
    if (!isNew) return this.#task(caller, taskId);
    const task = await this.#parts.store.task(caller.principal.tenant, taskId);
    if (task === undefined) throw noTask(taskId);
    return task;
  }

  /** The task that the message adds to. */
  async #addedTo(caller: A2aCaller, request: A2aSendRequest): Promise<TaskRecord | undefined> {
    const { message, clientTaskId } = request;
    if (message.taskId !== undefined && message.taskId !== "") {
      const task = await this.#task(caller, message.taskId);
      if (
        message.contextId !== undefined &&
        message.contextId !== "" &&
        threadOfContext(message.contextId) !== task.threadId
      ) {
        throw new RelayError(
          "invalid_argument",
          `contextId: task ${task.id} belongs to context ${contextOfThread(task.threadId)}, not to ${message.contextId}`,
        );
      }
      return task;
    }
    return clientTaskId === undefined ? undefined : this.#parts.a2aTasks.named(caller, clientTaskId);
  }

  /** A place among those who wait, kept until it is known what for. */
  #placeFor({ principal }: A2aCaller): Disposable {
    return this.#parts.waitQuota.watch(principal, taskTopic(principal.tenant, NO_TASK));
  }

  async #settled(
    asked: Asked,
    { signal, place }: WaitOptions & { readonly place: Disposable },
  ): Promise<TaskRecord> {
    const { store, clock, waitQuota, guard } = this.#parts;
    const { principal } = asked.caller;
    // Nobody can come in between and take the place.
    place[Symbol.dispose]();
    using watch = waitQuota.watch(principal, taskTopic(principal.tenant, asked.taskId));
    const endMs = clock.nowMs() + this.#settings.a2aBlockMs;
    for (let task = await this.#taskOf(asked); ;) {
      const leftMs = endMs - clock.nowMs();
      if (isSettled(task.state) || leftMs <= 0 || signal?.aborted === true) return task;
      await watch.changed({ timeoutMs: leftMs, signal });
      await guard.assertStillValid(principal);
      const next = await store.task(principal.tenant, asked.taskId);
      if (next === undefined) throw noTask(asked.taskId);
      task = next;
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

  async #assertStreams(caller: A2aCaller): Promise<void> {
    if (termsOf(await this.#cardOf(caller)).streams) return;
    throw new A2aError("UnsupportedOperation", "this agent's card says that it does not stream");
  }

  #cardOf({ principal, agentId }: A2aCaller): Promise<AgentCard | undefined> | undefined {
    return agentId === undefined ? undefined : this.#parts.store.agentCard(principal.tenant, agentId);
  }
}

/** What is said to a task that is over comes too late. */
async function added(task: TaskRecord, sending: Promise<SendResult>): Promise<SendResult> {
  try {
    return await sending;
  } catch (reason) {
    const { code, message } = RelayError.from(reason);
    // Who may only look at a task cannot add to it, and hears of that in the words of A2A.
    if (code === "not_found") throw noTask(task.id);
    if (code !== "task_finished" && code !== "task_canceled") throw reason;
    throw new A2aError("UnsupportedOperation", message, { cause: reason });
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

function namesTask({ message, clientTaskId }: A2aSendRequest): boolean {
  return clientTaskId !== undefined || (message.taskId !== undefined && message.taskId !== "");
}

function threadOf(contextId: string | undefined): string | undefined {
  return contextId === undefined || contextId === "" ? undefined : threadOfContext(contextId);
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
