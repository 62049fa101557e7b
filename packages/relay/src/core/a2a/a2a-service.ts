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
} from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import { assertTerms, termsOf } from "../agents/agent-terms.ts";
import type { Directory } from "../agents/directory.ts";
import type { Throttle } from "../mechanisms/throttle.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import type { MessageService } from "../messages/message-service.ts";
import type { SendResult } from "../messages/decide-send.ts";
import { taskTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { type A2aTaskExtent, A2aTaskReader } from "../tasks/a2a-task.ts";
import { contextOfThread, threadOfContext } from "../tasks/a2a-view.ts";
import type { TaskService } from "../tasks/task-service.ts";
import { assertAnswer, begunTask, messageOf, namingOf } from "./a2a-message.ts";
import type { A2aPushService } from "./a2a-push-service.ts";
import {
  type A2aCaller,
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
import { type A2aPage, type A2aStreamOptions, A2aStreams, isEnd } from "./a2a-streams.ts";
import { type A2aTasks, noTask, ownSinceMs, taskIdFor } from "./a2a-tasks.ts";
import { bytesAsJson } from "../mechanisms/stored-json.ts";

export interface A2aSettings {
  /** How long a send waits for the end of its task before it answers with the unfinished task. */
  readonly a2aBlockMs: number;
  readonly heartbeatMs: number;
}

interface A2aParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly throttle: Throttle;
  readonly waitQuota: WaitQuota;
  readonly messages: MessageService;
  readonly tasks: TaskService;
  readonly a2aTasks: A2aTasks;
  readonly a2aPushes: A2aPushService;
}

/** An accepted message and its task. */
interface SentMessage {
  /** The caller, with the agent at whose endpoint the task was requested. */
  readonly caller: A2aCaller;
  readonly taskId: string;
  /** False when the same message had been accepted before. */
  readonly isNew: boolean;
  /** The task, where the message began it. */
  readonly begun: A2aTask | undefined;
}

/** Its topic never changes: a watch of it only takes a slot of the caller's quota. */
const NO_TASK = "";

/** The A2A operations of every agent, online or not. */
export class A2aService {
  readonly #parts: A2aParts;
  readonly #settings: A2aSettings;
  readonly #taskReader: A2aTaskReader;
  readonly #streams: A2aStreams;

  constructor(parts: A2aParts, settings: A2aSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#taskReader = new A2aTaskReader(parts.store);
    this.#streams = new A2aStreams({ ...parts, taskReader: this.#taskReader }, settings);
  }

  /** The agent that a path or a field names. */
  resolve(principal: Principal, name: string): Promise<AgentId> {
    return this.#parts.directory.resolveRecipient(principal.tenant, name, "agent");
  }

  async isNamedByCaller(principal: Principal, taskId: string): Promise<boolean> {
    const caller = { principal, version: "0.1", agentId: undefined } as const;
    return (await this.#parts.a2aTasks.named(caller, taskId)) !== undefined;
  }

  /** Waits until the task ends or asks a question, at most `a2aBlockMs`, unless the caller wants an answer at once. */
  async send(caller: A2aCaller, params: unknown, waiting: WaitOptions): Promise<A2aSendResult> {
    const request = parseSend(params);
    const { returnImmediately = false, historyLength } = request.configuration ?? {};
    if (returnImmediately) {
      const sent = await this.#sendMessage(caller, request);
      const task = sent.begun ?? (await this.#read(caller, await this.#taskOf(sent), historyLength));
      return { task };
    }
    const { signal } = waiting;
    // The quota refuses before the message is sent: a caller would send a refused message again.
    using slot = this.#takeWaitSlot(caller);
    const sent = await this.#sendMessage(caller, request);
    slot[Symbol.dispose]();
    const task = await this.#awaitEnd(sent, signal);
    const message = task.isPlain ? await this.#taskReader.plainMessage(task) : undefined;
    if (message === undefined) return { task: await this.#read(caller, task, historyLength) };
    assertAnswer({ message });
    return { message };
  }

  /** The task, then its updates until it ends or asks a question. Refuses before the first page. */
  async stream(caller: A2aCaller, params: unknown, waiting: WaitOptions): Promise<AsyncIterable<A2aPage>> {
    const request = parseSend(params);
    await this.#assertStreams(caller);
    const { signal } = waiting;
    using slot = this.#takeWaitSlot(caller);
    const task = await this.#taskOf(await this.#sendMessage(caller, request));
    slot[Symbol.dispose]();
    return this.#follow(caller, task, { signal, endsAtQuestion: true });
  }

  /** Streams an existing task to its end; with `afterN`, only the updates after that number. */
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
    const { afterN } = waiting;
    if (afterN !== undefined && afterN > task.updateCount) {
      throw new RelayError("invalid_argument", `Last-Event-ID: task ${task.id} has no event ${afterN} yet`);
    }
    return this.#follow(caller, task, { signal: waiting.signal, endsAtQuestion: false, afterN });
  }

  async get(caller: A2aCaller, params: unknown): Promise<A2aTask> {
    const { id, historyLength } = parseTaskRequest(params);
    return this.#read(caller, await this.#task(caller, id), historyLength);
  }

  /** The tasks that the caller requested from this agent over A2A, the latest change first. */
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
    const { tasks, hasMore, total } = await store.tasks.asked({
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
    const page = await this.#readPage(caller, tasks, {
      historyLength: request.historyLength ?? 0,
      withArtifacts: request.includeArtifacts === true,
    });
    const last = tasks[page.length - 1];
    const isLastPage = !hasMore && page.length === tasks.length;
    const nextPageToken = isLastPage || last === undefined ? "" : writePageToken(last);
    return { tasks: page, nextPageToken, pageSize, totalSize: total };
  }

  /** Canceling a canceled task changes nothing. */
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
    return this.#read(caller, await this.#task(caller, task.id), undefined);
  }

  async #sendMessage(caller: A2aCaller, request: A2aSendRequest): Promise<SentMessage> {
    assertFromUser(request, caller.version);
    const task = await this.#continuedTask(caller, request);
    const to = task?.assignee ?? caller.agentId;
    if (to === undefined) {
      throw new RelayError(
        "invalid_argument",
        "the message names no agent: put its id into metadata.relay_target_agent_id or the tenant field",
      );
    }
    const called = { ...caller, agentId: task?.askedOf ?? to };
    const { parts } = request.message;
    assertTerms(termsOf(await this.#cardOf(called)), { parts, extensions: caller.extensions });
    const pushConfig = request.configuration?.taskPushNotificationConfig;
    if (pushConfig !== undefined) await this.#parts.a2aPushes.check(called, pushConfig, task);
    const message = messageOf(caller, request, { to, task });
    const result =
      task === undefined
        ? await this.#parts.messages.send(caller.principal, message, {
            naming: namingOf(request, message),
            to,
            isAsked: true,
          })
        : await this.#addTo(task, caller.principal, message);
    const taskId = result.receipt.task_id;
    if (taskId === undefined) throw new RelayError("internal", "a request made no task");
    const begun = task === undefined ? begunTask(result, caller, request) : undefined;
    const sent = { caller: called, taskId, isNew: result.created, begun };
    if (pushConfig !== undefined) await this.#attachPush(sent, pushConfig, task?.updateCount ?? 0);
    return sent;
  }

  /** The task that the message adds to; undefined where it begins one. */
  async #continuedTask(caller: A2aCaller, request: A2aSendRequest): Promise<TaskRecord | undefined> {
    const { message, clientTaskId } = request;
    if (message.taskId === undefined || message.taskId === "") {
      return clientTaskId === undefined ? undefined : this.#parts.a2aTasks.named(caller, clientTaskId);
    }
    const task = await this.#task(caller, message.taskId);
    const threadId = threadOf(message.contextId);
    if (threadId === undefined || threadId === task.threadId) return task;
    throw new RelayError(
      "invalid_argument",
      `contextId: task ${task.id} belongs to context ${contextOfThread(task.threadId)}, not to ${message.contextId}`,
    );
  }

  async #addTo(task: TaskRecord, principal: Principal, message: object): Promise<SendResult> {
    try {
      return await this.#parts.messages.send(principal, message, { isAsked: true });
    } catch (reason) {
      const error = RelayError.from(reason);
      // A caller that may read the task but not add to it gets A2A's own error.
      if (error.code === "not_found") throw noTask(task.id);
      if (error.code !== "task_finished" && error.code !== "task_canceled") throw reason;
      throw new A2aError("UnsupportedOperation", error.message, { cause: reason });
    }
  }

  /** The message is sent and the configuration was checked, so a refusal now must not make the caller send again. */
  async #attachPush(sent: SentMessage, pushConfig: unknown, afterN: number): Promise<void> {
    try {
      const task = await this.#taskOf(sent);
      await this.#parts.a2aPushes.attach(sent.caller, task, pushConfig, afterN);
    } catch (reason) {
      if (!(reason instanceof RelayError)) throw reason;
    }
  }

  /** A repeated message may be about a task that its caller may no longer read. */
  async #taskOf({ caller, taskId, isNew }: SentMessage): Promise<TaskRecord> {
    if (!isNew) return this.#task(caller, taskId);
    const [task] = await this.#parts.store.tasks.get(caller.principal.tenant, [taskId]);
    if (task === undefined) throw noTask(taskId);
    return task;
  }

  #takeWaitSlot({ principal }: A2aCaller): Disposable {
    return this.#parts.waitQuota.watch(principal, taskTopic(principal.tenant, NO_TASK));
  }

  async #awaitEnd(sent: SentMessage, signal: AbortSignal | undefined): Promise<TaskRecord> {
    const { store, clock, waitQuota, guard } = this.#parts;
    const { principal } = sent.caller;
    using watch = waitQuota.watch(principal, taskTopic(principal.tenant, sent.taskId));
    const endMs = clock.nowMs() + this.#settings.a2aBlockMs;
    for (let task = await this.#taskOf(sent); ;) {
      const leftMs = endMs - clock.nowMs();
      if (isEnd(task.state, true) || leftMs <= 0 || signal?.aborted === true) return task;
      await watch.changed({ timeoutMs: leftMs, signal });
      await guard.assertStillValid(principal);
      const [next] = await store.tasks.get(principal.tenant, [sent.taskId]);
      if (next === undefined) throw noTask(sent.taskId);
      task = next;
    }
  }

  #follow(
    caller: A2aCaller,
    task: TaskRecord,
    options: Pick<A2aStreamOptions, "afterN" | "endsAtQuestion" | "signal">,
  ): AsyncIterable<A2aPage> {
    const taskId = taskIdFor(caller, task);
    const numbersArtifacts = caller.version === "0.1";
    return this.#streams.follow(caller.principal, task, { ...options, taskId, numbersArtifacts });
  }

  async #read(caller: A2aCaller, record: TaskRecord, historyLength: number | undefined): Promise<A2aTask> {
    const { task } = await this.#taskReader.read(record, { historyLength, withArtifacts: true });
    assertAnswer({ task });
    return { ...task, id: taskIdFor(caller, record) };
  }

  /** As many tasks, in their order, as fit into one answer; at least one. */
  async #readPage(
    caller: A2aCaller,
    records: readonly TaskRecord[],
    extent: A2aTaskExtent,
  ): Promise<readonly A2aTask[]> {
    const tasks: A2aTask[] = [];
    let bytes = 0;
    for (const record of records) {
      const { task } = await this.#taskReader.read(record, extent);
      bytes += bytesAsJson(task);
      if (bytes > LIMITS.answerBytesMax && tasks.length > 0) break;
      tasks.push({ ...task, id: taskIdFor(caller, record) });
    }
    return tasks;
  }

  #task(caller: A2aCaller, id: string): Promise<TaskRecord> {
    return this.#parts.a2aTasks.find(caller, id);
  }

  async #assertStreams(caller: A2aCaller): Promise<void> {
    if (termsOf(await this.#cardOf(caller)).streams) return;
    throw new A2aError("UnsupportedOperation", "this agent's card says that it does not stream");
  }

  async #cardOf({ principal, agentId }: A2aCaller): Promise<AgentCard | undefined> {
    if (agentId === undefined) return undefined;
    return (await this.#parts.store.agents.get(principal.tenant, agentId))?.agent.card;
  }
}

function threadOf(contextId: string | undefined): string | undefined {
  return contextId === undefined || contextId === "" ? undefined : threadOfContext(contextId);
}

function assertFromUser({ message }: A2aSendRequest, version: A2aVersion): void {
  const role = message.role ?? (version === "0.1" ? "ROLE_USER" : undefined);
  if (role !== "ROLE_USER" && role !== "user") {
    throw new RelayError("invalid_argument", "message.role: must be ROLE_USER in a request");
  }
  if (message.messageId === undefined && version !== "0.1") {
    throw new RelayError(
      "invalid_argument",
      "message.messageId: is missing; give every message an id of its own",
    );
  }
}
