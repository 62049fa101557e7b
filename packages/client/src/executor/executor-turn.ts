import type { AgentExecutionEvent, ExecutionEventBus, RequestContext } from "@a2a-js/sdk/server";
import {
  type A2aArtifactUpdate,
  type A2aMessage,
  type A2aStatusUpdate,
  type A2aTask,
  readTaskState,
  RelayError,
  textOfParts,
} from "@a2a-relay/protocol";
import type { AgentTask, TaskReply } from "../agent/agent-task.ts";
import { withPiece } from "../agent/artifact-batches.ts";
import { isAskedOverA2a, type SaidParts } from "../agent/task-content.ts";
import { pause, settledWithin } from "../http/abort.ts";
import { ExecutorArtifacts } from "./executor-artifacts.ts";
import { createRequestContext, type ExecutorTurnParts } from "./executor-context.ts";
import { PublishedEvents } from "./published-events.ts";

type StatusChange = Partial<Pick<A2aStatusUpdate, "status">> & { readonly metadata?: unknown };
type ArtifactEvent = Extract<AgentExecutionEvent, { readonly kind: "artifactUpdate" }>;

/** How long an executor may take to cancel a task. */
const CANCEL_MS_MAX = 5_000;
/** How long an executor may run after its `finished` event. */
const FINISH_MS_MAX = 1_000;
/** Chunks of an artifact are sent one by one up to this number, unless many are pending. */
const SINGLE_PIECES_MAX = 200;
const PENDING_PIECES_MAX = 32;
/** Later chunks are batched, since the parts of an artifact are limited; the delay grows with their number. */
const GATHER_MS_MAX = 1_000;
/** The longest text result; agents read longer ones from the artifacts. */
const RESULT_CHARS_MAX = 100_000;

/** Executes one message, until its task has ended or waits for input. */
export class ExecutorTurn {
  readonly #parts: ExecutorTurnParts;
  readonly #task: AgentTask;
  readonly #artifacts: ExecutorArtifacts;
  readonly #pieces = new Map<string, number>();
  #state: string;
  /** The id of the task's status message. */
  #saidId: string | undefined;
  #reply: TaskReply;
  #failure: { readonly reason: unknown } | undefined;
  #isOver = false;

  constructor(parts: ExecutorTurnParts, task: AgentTask) {
    this.#parts = parts;
    this.#task = task;
    this.#artifacts = new ExecutorArtifacts(parts.sdk, task);
    this.#state = task.view.state;
  }

  /** Rejects with the executor's error, or with the reason of the task's signal. */
  async run(): Promise<TaskReply> {
    const { sdk } = this.#parts;
    const { signal } = this.#task;
    const context = await createRequestContext(this.#parts, this.#task);
    this.#saidId = context.task?.status?.message?.messageId;
    const bus = new sdk.DefaultExecutionEventBus();
    const events = new PublishedEvents(bus, signal);
    const executed = this.#execute(context, bus, events);
    try {
      if (await this.#handleAll(events)) return this.#reply;
      // An executor may publish `finished` before it returns.
      await settledWithin(FINISH_MS_MAX, executed);
      if (this.#failure !== undefined) throw this.#failure.reason;
    } catch (reason) {
      if (isEnded(signal)) await this.#cancel(bus);
      throw reason;
    } finally {
      events.end();
      events.close();
      this.#isOver = true;
    }
    if (this.#isAsking) this.#task.endTurn();
    else this.#task.fail("the executor ended without saying how the task ended");
    return undefined;
  }

  /** Ends the events. Never rejects: an error is kept, or reported when the turn is over. */
  async #execute(context: RequestContext, bus: ExecutionEventBus, events: PublishedEvents): Promise<void> {
    const { executor, errors } = this.#parts;
    try {
      await executor.execute(context, bus);
    } catch (reason) {
      this.#failure = { reason };
      if (this.#isOver && !this.#task.signal.aborted) errors.report(reason, "task");
    } finally {
      events.end();
    }
  }

  /** True when one of the events ends the turn. */
  async #handleAll(events: PublishedEvents): Promise<boolean> {
    for (;;) {
      const event = await events.next();
      if (event === undefined) return false;
      if (await this.#handle(event, events)) return true;
    }
  }

  async #handle(event: AgentExecutionEvent, events: PublishedEvents): Promise<boolean> {
    const { sdk } = this.#parts;
    switch (event.kind) {
      case "task":
        return this.#handleTask(sdk.Task.toJSON(event.data) as A2aTask);
      case "statusUpdate":
        return this.#handleStatus(sdk.TaskStatusUpdateEvent.toJSON(event.data) as A2aStatusUpdate);
      case "artifactUpdate":
        await this.#handleArtifact(event, events);
        return false;
      case "message":
      default:
        this.#task.answerPlainly(saidOf(sdk.Message.toJSON(event.data) as A2aMessage));
        return true;
    }
  }

  /** Most executors publish the unchanged task first; some publish the whole task at the end. */
  async #handleTask({ status, artifacts = [], metadata }: Partial<A2aTask>): Promise<boolean> {
    for (const artifact of artifacts) await this.#artifacts.putWhole(artifact);
    if (status === undefined) return false;
    const { messageId } = status.message ?? {};
    const isKnown = readTaskState(status.state) === this.#state && messageId === this.#saidId;
    return isKnown ? false : this.#handleStatus({ status, metadata });
  }

  async #handleStatus({ status, metadata }: StatusChange): Promise<boolean> {
    const state = readTaskState(status?.state);
    const said = { ...saidOf(status?.message), ...metadataIn(metadata) };
    switch (state) {
      case "working":
      case "input-required":
      case "auth-required":
        await this.#task.report(state, said);
        this.#state = state;
        return false;
      case "completed":
        this.#reply = await this.#replyOf(said);
        return true;
      case "rejected":
        this.#task.reject(said);
        return true;
      case "failed":
        this.#task.fail(said);
        return true;
      case "canceled":
        // Only the requester cancels a task, so this is a failure of the agent.
        this.#task.fail(said.parts === undefined ? { ...said, text: "the agent canceled the task" } : said);
        return true;
      case "submitted":
      case undefined:
      default:
        return false;
    }
  }

  async #handleArtifact(event: ArtifactEvent, events: PublishedEvents): Promise<void> {
    const update = this.#updateIn(event);
    const { artifact, append = false, lastChunk = false, metadata } = update;
    const id = artifact.artifactId;
    const count = (this.#pieces.get(id) ?? 0) + 1;
    this.#pieces.set(id, append ? count : 1);
    const more = append ? await this.#gather(id, count, events) : [];
    let { parts } = artifact;
    for (const piece of more) parts = withPiece(parts, piece.artifact.parts);
    const isLast = more.at(-1)?.lastChunk ?? lastChunk;
    const how = { append, lastChunk: isLast, ...metadataIn(metadata) };
    await this.#artifacts.put({ ...artifact, parts }, how);
  }

  /** Pending chunks of the same artifact, to send with this one. */
  async #gather(id: string, count: number, events: PublishedEvents): Promise<readonly A2aArtifactUpdate[]> {
    const isLong = count > SINGLE_PIECES_MAX;
    if (!isLong && events.count < PENDING_PIECES_MAX) return [];
    if (isLong && !events.isOver) await pause(Math.min(count, GATHER_MS_MAX), this.#task);
    const fits = (event: AgentExecutionEvent): event is ArtifactEvent =>
      event.kind === "artifactUpdate" && event.data.append && event.data.artifact?.artifactId === id;
    return events.takeWhile(fits).map((event) => this.#updateIn(event));
  }

  #updateIn({ data }: ArtifactEvent): A2aArtifactUpdate {
    const update = this.#parts.sdk.TaskArtifactUpdateEvent.toJSON(data) as A2aArtifactUpdate;
    return { ...update, artifact: { ...update.artifact, parts: update.artifact?.parts ?? [] } };
  }

  get #isAsking(): boolean {
    return this.#state === "input-required" || this.#state === "auth-required";
  }

  /** A standard A2A caller gets only what the executor said; other agents get the text of the artifacts. */
  async #replyOf(said: SaidParts): Promise<TaskReply> {
    const { client } = this.#parts;
    const { id, message, signal } = this.#task;
    if (said.parts !== undefined) return said;
    if (isAskedOverA2a(message)) return { ...said, text: "" };
    const { artifacts } = await client.task(id, { signal });
    const text = artifacts.map(({ parts }) => textOfParts(parts)).join("\n");
    return text === "" || text.length > RESULT_CHARS_MAX ? said : { ...said, text };
  }

  /** Ignores further events: the relay has ended the task already. */
  async #cancel(bus: ExecutionEventBus): Promise<void> {
    const { executor, errors } = this.#parts;
    const canceled = (async () => executor.cancelTask(this.#task.id, bus))();
    const heard = canceled.catch((reason: unknown) => errors.report(reason, "task"));
    await settledWithin(CANCEL_MS_MAX, heard);
  }
}

/** Derived by the relay. */
const OWN_MEMBERS = new Set(["role", "parts", "taskId", "contextId"]);

function saidOf(message: A2aMessage | undefined): SaidParts {
  if (message === undefined) return {};
  const members = Object.entries(message).filter(([name]) => !OWN_MEMBERS.has(name));
  const { parts = [] } = message as Partial<A2aMessage>;
  return {
    ...(parts.length === 0 ? {} : { parts }),
    ...(members.length === 0 ? {} : { a2aMessage: Object.fromEntries(members) }),
  };
}

function metadataIn(metadata: unknown): Pick<SaidParts, "metadata"> {
  if (typeof metadata !== "object" || metadata === null || Object.keys(metadata).length === 0) return {};
  return { metadata: metadata as Readonly<Record<string, unknown>> };
}

/** The task itself is over, not only this worker's lease. */
function isEnded(signal: AbortSignal): boolean {
  const reason: unknown = signal.reason;
  if (!(reason instanceof RelayError)) return false;
  return reason.code === "task_canceled" || reason.code === "task_finished";
}
