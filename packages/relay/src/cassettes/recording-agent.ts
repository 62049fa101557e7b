import {
  type AgentMessage,
  type AgentTask,
  RelayAgent,
  type RelayAgentOptions,
  type SaidParts,
  type TaskReply,
} from "@a2a-relay/client";
import {
  isTerminal,
  LIMITS,
  type Message,
  type MessageInput,
  POSTMASTER,
  RelayError,
  type TaskView,
} from "@a2a-relay/protocol";
import { CassetteFile } from "./cassette-file.ts";
import { ExchangeRecording, type RecordedEnd } from "./exchange-recording.ts";
import { messageKey, answeredQuestions } from "./resume.ts";
import { StepForwarder, type TurnEnd, NO_STEP, upstreamSteps } from "./upstream-task.ts";

export interface RecordingAgentOptions extends RelayAgentOptions {
  /** The real agent, whose answers are passed on and recorded. */
  readonly upstream: string;
  /** The file that gets them. */
  readonly cassette: string;
  readonly onRecorded?: ((recorded: Recorded) => unknown) | undefined;
  /** Never written, wherever they occur; the key of this agent is one of them. */
  readonly secrets?: readonly string[] | undefined;
  readonly nowMs?: (() => number) | undefined;
}

export interface Recorded {
  readonly message: Message;
  readonly taskId: string;
  readonly state: TaskView["state"];
  /** False where the exchange is in the file already. */
  readonly isWritten: boolean;
}

/** The same after each start, so that a restarted recorder resumes its leases. */
const WORKER = "recorder";
/** Short, because a successor can go on only after the lease of a killed recorder. */
const LEASE_MS = 3_000;
const STOP_MS = 500;

/** The progress of the real agent's task. */
interface Followed {
  readonly recording: ExchangeRecording;
  /** How many answers of the requester the real agent got in earlier turns. */
  readonly answersKnown: number;
  readonly partCounts: Map<string, number>;
  readonly isAsked: boolean;
  /** The event id of the last step. */
  lastId: string;
}

/** With the parts that the requester gets. */
type Ended = RecordedEnd & { readonly said: SaidParts };

/** Stands in for a real agent: passes tasks on to it, records the answers and replies with them. */
export class RecordingAgent implements AsyncDisposable {
  readonly id: string;
  readonly #options: RecordingAgentOptions;
  readonly #agent: RelayAgent;
  readonly #file: CassetteFile;
  readonly #stopping = new AbortController();
  /** By task, while a question is open. */
  readonly #asked = new Map<string, Followed>();
  /** Messages that wait for the real agent. */
  readonly #waiting = new Set<string>();

  constructor(options: RecordingAgentOptions) {
    this.#options = options;
    const own = { concurrency: LIMITS.leaseCountMax, worker: WORKER, leaseMs: LEASE_MS };
    this.#agent = new RelayAgent({ ...own, ...options })
      .onTask((task) => this.#onTask(task))
      .onMessage((message) => this.#onMessage(message));
    this.id = this.#agent.id;
    this.#file = new CassetteFile(options.cassette, this.id);
    if (options.upstream === this.id) {
      throw new RelayError(
        "invalid_argument",
        `upstream: ${this.id} cannot be recorded through its own mailbox`,
      );
    }
  }

  async start(): Promise<void> {
    await this.#file.check();
    await this.#agent.start({ signal: this.#stopping.signal });
  }

  /** Gives back tasks that the real agent has not answered; the next recorder resumes them. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#agent.stop(this.#waiting.size === 0 ? {} : { timeoutMs: STOP_MS });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #onTask(task: AgentTask): Promise<TaskReply> {
    const { client } = this.#agent;
    const { signal } = task;
    const first = task.isFollowUp
      ? (await client.message(task.view.message_id, { signal })).message
      : task.message;
    const taskId = await this.#passOn(task, first);
    const followed = await this.#followedOf(task, first);
    const end = await this.#end(task, taskId, followed);
    const { recording } = followed;
    recording.end(end);
    if (!isTerminal(end.state)) {
      this.#asked.set(task.id, { ...followed, isAsked: true, answersKnown: 0 });
      return ask(task, end);
    }
    const isWritten = await this.#file.append(recording.toExchange(), { unlessKnown: task.attempt > 1 });
    await this.#options.onRecorded?.({ message: first, taskId: task.id, state: end.state, isWritten });
    return answer(task, end);
  }

  /** Sends the same message as this agent. The key comes from the message's id: a redelivery asks once. */
  async #passOn(task: AgentTask, first: Message): Promise<string> {
    const { upstream } = this.#options;
    const { client } = this.#agent;
    const { deadline_ms } = task.view;
    const { signal } = task;
    const request = {
      ...contentOf(first),
      type: "request",
      from: this.id,
      to: upstream,
      parent: task.id,
      ...(deadline_ms === undefined ? {} : { deadline_ms }),
    } as const;
    const { receipt } = await client.send(request, { signal });
    const { task_id: taskId } = receipt;
    if (taskId === undefined)
      throw new RelayError("internal", `the relay made no task of ${receipt.message_id}`);
    if (!task.isFollowUp) return taskId;
    const more = {
      ...contentOf(task.message),
      type: "reply",
      from: this.id,
      to: upstream,
      task_id: taskId,
    } as const;
    await client.send(more, { signal }).catch(unlessOver);
    return taskId;
  }

  /** After a restart or a failed turn, the steps are read again from the beginning. */
  async #followedOf(task: AgentTask, first: Message): Promise<Followed> {
    const known = this.#asked.get(task.id);
    this.#asked.delete(task.id);
    if (task.isFollowUp && known !== undefined) return known;
    const { nowMs = () => performance.now(), secrets = [], apiKey } = this.#options;
    const recording = new ExchangeRecording(first, { nowMs, secrets: [...secrets, apiKey ?? ""] });
    const message = { agentId: this.id, taskId: task.id, messageId: task.message.id };
    const answersKnown = task.isFollowUp ? await answeredQuestions(this.#agent.client, message, task) : 0;
    return { recording, answersKnown, partCounts: new Map(), isAsked: false, lastId: NO_STEP };
  }

  /** Forwards the steps of the real agent until its answer or a question. */
  async #end(task: AgentTask, taskId: string, followed: Followed): Promise<Ended> {
    const { client } = this.#agent;
    const stopping = this.#stopping.signal;
    const forwarder = new StepForwarder({ ...followed, task });
    const signal = AbortSignal.any([task.signal, stopping, forwarder.signal]);
    const from = { agentId: this.#options.upstream, taskId, afterId: followed.lastId };
    this.#waiting.add(task.message.id);
    try {
      for await (const step of upstreamSteps(client, from, { signal })) {
        followed.lastId = step.eventId;
        const end = forwarder.take(step);
        if (end === undefined) continue;
        await forwarder.reported();
        return isTerminal(end.state) ? await this.#resultOf(taskId, end, signal) : end;
      }
    } catch (reason) {
      // Rejects only after the agent itself is stopping; before that, it would count as a failure of the task.
      if (stopping.aborted) await aborted(task.signal);
      await this.#giveUp(task, taskId);
      throw reason;
    } finally {
      this.#waiting.delete(task.message.id);
    }
    throw new RelayError("internal", `nothing more was heard of task ${taskId}`);
  }

  /** The end with the content of the result message, and with flags of the task. */
  async #resultOf(taskId: string, { state, said }: TurnEnd, signal: AbortSignal): Promise<Ended> {
    const { client } = this.#agent;
    const view = await client.task(taskId, { signal });
    const { result_message_id: id, result_status: status, plain = false } = view;
    const message = id === undefined ? undefined : (await client.message(id, { signal })).message;
    const words = message === undefined ? {} : { text: message.body, parts: message.parts };
    return { state, said: { ...said, ...words }, isPartial: status === "partial", isPlain: plain };
  }

  /** A canceled task is canceled at the real agent too. */
  async #giveUp(task: AgentTask, taskId: string): Promise<void> {
    const reason: unknown = task.signal.reason;
    if (!(reason instanceof RelayError) || reason.code !== "task_canceled") return;
    await this.#agent.client.cancelTask(taskId).catch(() => undefined);
  }

  /** Passes on messages that make no task; answers and notices end here. */
  async #onMessage({ message, signal }: AgentMessage): Promise<void> {
    const { upstream } = this.#options;
    const isForUpstream = ["note", "alert", "memory"].includes(message.type);
    if (!isForUpstream || message.from === POSTMASTER || message.from === upstream) return;
    const forwarded = { ...contentOf(message), type: message.type, from: this.id, to: upstream };
    await this.#agent.client.send(forwarded, { signal });
  }
}

function ask(task: AgentTask, { state, said }: Ended): undefined {
  if (state === "auth-required") task.askAuth(said);
  else task.askInput(said);
}

function answer(task: AgentTask, { state, said, isPartial = false, isPlain = false }: Ended): TaskReply {
  if (state === "rejected") task.reject(said);
  else if (state !== "completed") task.fail(said);
  return { ...said, plain: isPlain, ...(isPartial ? { resultStatus: "partial" } : {}) };
}

function contentOf(message: Message): Pick<MessageInput, "subject" | "body" | "parts" | "idempotency_key"> {
  const { id, subject, body, parts } = message;
  return {
    subject,
    body,
    ...(parts === undefined ? {} : { parts: [...parts] }),
    idempotency_key: messageKey("recorded", id),
  };
}

/** A real agent may end its task without waiting for the answer. */
function unlessOver(reason: unknown): void {
  if (reason instanceof RelayError && ["task_finished", "task_canceled"].includes(reason.code)) return;
  throw reason;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
