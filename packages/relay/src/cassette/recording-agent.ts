import {
  type AgentMessage,
  type AgentTask,
  RelayAgent,
  type RelayAgentOptions,
  type TaskReply,
} from "@a2a-relay/client";
import {
  type Artifact,
  isTerminal,
  LIMITS,
  type Message,
  type MessageInput,
  POSTMASTER,
  RelayError,
  type TaskView,
} from "@a2a-relay/protocol";
import { CassetteFile } from "./cassette-file.ts";
import { ExchangeRecording, type Result } from "./exchange-recording.ts";
import { letterKey } from "./letter-key.ts";
import { taskLooks } from "./task-looks.ts";

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
  /** False where the exchange is in the file already, or its beginning was not seen. */
  readonly isWritten: boolean;
}

/** The same after each start, so that a recorder that was killed goes on with what it had begun. */
const WORKER = "recorder";
const STOP_MS = 500;

/** Sits in front of a real agent: passes work on to it, writes down what comes back, and answers with that. */
export class RecordingAgent implements AsyncDisposable {
  readonly id: string;
  readonly #options: RecordingAgentOptions;
  readonly #agent: RelayAgent;
  readonly #file: CassetteFile;
  readonly #stopping = new AbortController();
  /** By task, from its request to its end. */
  readonly #recordings = new Map<string, ExchangeRecording>();
  /** Letters that wait for the real agent. */
  readonly #waiting = new Set<string>();

  constructor(options: RecordingAgentOptions) {
    this.#options = options;
    this.#agent = new RelayAgent({ concurrency: LIMITS.leaseCountMax, worker: WORKER, ...options })
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

  /** Work that the real agent has not answered is given back; the next recorder goes on with it. */
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
    const recording = this.#recordingOf(task, first);
    const result = await this.#result(task, taskId, recording);
    recording?.end(result);
    if (result.state === "input-required" || result.state === "auth-required") return ask(task, result);
    this.#recordings.delete(task.id);
    const isWritten =
      recording !== undefined &&
      (await this.#file.append(recording.toExchange(), { unlessKnown: task.attempt > 1 }));
    await this.#options.onRecorded?.({ message: first, taskId: task.id, state: result.state, isWritten });
    return answer(task, result);
  }

  /** The same letter, asked as this agent. The key is the letter's, so that one that comes again is asked once. */
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
    await client.send(more, { signal });
    return taskId;
  }

  /** Undefined where a recorder before this one saw the beginning: half an exchange is of no use. */
  #recordingOf(task: AgentTask, first: Message): ExchangeRecording | undefined {
    const known = this.#recordings.get(task.id);
    known?.goOn();
    if (task.isFollowUp) return known;
    const { nowMs = () => performance.now(), secrets = [], apiKey } = this.#options;
    const recording = new ExchangeRecording(first, { nowMs, secrets: [...secrets, apiKey ?? ""] });
    this.#recordings.set(task.id, recording);
    return recording;
  }

  /** Passes on what the real agent tells, until it has answered or asks. */
  async #result(task: AgentTask, taskId: string, recording: ExchangeRecording | undefined): Promise<Result> {
    const { client } = this.#agent;
    const stopping = this.#stopping.signal;
    const signal = AbortSignal.any([task.signal, stopping]);
    const news = new TaskNews(task, recording);
    this.#waiting.add(task.message.id);
    try {
      for await (const view of taskLooks(client, taskId, { signal })) {
        await news.tell(view);
        const isQuestion = view.state === "input-required" || view.state === "auth-required";
        if (isTerminal(view.state) || isQuestion) return await this.#resultOf(view, signal);
      }
    } catch (reason) {
      // Told to the relay as an end of the work only after the agent itself has heard that it stops.
      if (stopping.aborted) await aborted(task.signal);
      await this.#giveUp(task, taskId);
      throw reason;
    } finally {
      this.#waiting.delete(task.message.id);
    }
    throw new RelayError("internal", `nothing more was heard of task ${taskId}`);
  }

  async #resultOf(view: TaskView, signal: AbortSignal): Promise<Result> {
    const { state, result_message_id: id, status_text: text = "", result_status: status } = view;
    const letter = id === undefined ? undefined : (await this.#agent.client.message(id, { signal })).message;
    return { state, text: letter?.body ?? text, parts: letter?.parts, isPartial: status === "partial" };
  }

  /** Work that its requester no longer needs is not needed from the real agent either. */
  async #giveUp(task: AgentTask, taskId: string): Promise<void> {
    const reason: unknown = task.signal.reason;
    if (!(reason instanceof RelayError) || reason.code !== "task_canceled") return;
    this.#recordings.delete(task.id);
    await this.#agent.client.cancelTask(taskId).catch(() => undefined);
  }

  /** Mail that asks for nothing is passed on; answers and notices have come to their end here. */
  async #onMessage({ message, signal }: AgentMessage): Promise<void> {
    const { upstream } = this.#options;
    const isForUpstream = ["note", "alert", "memory"].includes(message.type);
    if (!isForUpstream || message.from === POSTMASTER || message.from === upstream) return;
    const letter = { ...contentOf(message), type: message.type, from: this.id, to: upstream };
    await this.#agent.client.send(letter, { signal });
  }
}

/** Tells the requester, and the recording, what is new at each look. */
class TaskNews {
  readonly #task: AgentTask;
  readonly #recording: ExchangeRecording | undefined;
  /** How many parts of each artifact the requester has. */
  readonly #partsTold: Map<string, number>;
  #statusTold: string | undefined;
  #isFirst = true;

  constructor(task: AgentTask, recording: ExchangeRecording | undefined) {
    this.#task = task;
    this.#recording = recording;
    const known = task.isFollowUp ? task.view.artifacts : [];
    this.#partsTold = new Map(known.map(({ artifactId, parts }) => [artifactId, parts.length]));
  }

  async tell(view: TaskView): Promise<void> {
    const { state, status_text: text } = view;
    // What an answered question leaves behind is its text, and no news.
    if (this.#isFirst && this.#task.isFollowUp) this.#statusTold = text;
    this.#isFirst = false;
    for (const artifact of view.artifacts) await this.#tellArtifact(artifact);
    if (state !== "working" || text === undefined || text === this.#statusTold) return;
    this.#statusTold = text;
    this.#recording?.status(text);
    await this.#task.working(text);
  }

  async #tellArtifact(artifact: Artifact): Promise<void> {
    const { artifactId, parts } = artifact;
    const told = this.#partsTold.get(artifactId) ?? 0;
    const fresh = parts.slice(told);
    if (fresh.length === 0) return;
    this.#partsTold.set(artifactId, parts.length);
    this.#recording?.artifact(artifact, fresh);
    await this.#task.addArtifact({ ...artifact, parts: fresh }, { append: told > 0 });
  }
}

function ask(task: AgentTask, { state, text }: Result): undefined {
  if (state === "auth-required") task.askAuth(text);
  else task.askInput(text);
}

function answer(task: AgentTask, { state, text, parts, isPartial }: Result): TaskReply {
  if (state === "rejected") task.reject(text);
  else if (state !== "completed") task.fail(text);
  return { text, parts, ...(isPartial ? { resultStatus: "partial" } : {}) };
}

function contentOf(message: Message): Pick<MessageInput, "subject" | "body" | "parts" | "idempotency_key"> {
  const { id, subject, body, parts } = message;
  return {
    subject,
    body,
    ...(parts === undefined ? {} : { parts: [...parts] }),
    idempotency_key: letterKey("recorded", id),
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
