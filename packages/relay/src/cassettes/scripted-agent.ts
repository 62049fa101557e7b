import { setTimeout as sleep } from "node:timers/promises";
import {
  type AgentMessage,
  type AgentTask,
  RelayAgent,
  type RelayAgentOptions,
  type TaskReply,
  type TaskReplyParts,
} from "@a2a-relay/client";
import { LIMITS, type Message, POSTMASTER, RelayError } from "@a2a-relay/protocol";
import { CassettePlayer, type Cue } from "./cassette-player.ts";
import {
  type Cassette,
  chunksOf,
  type Exchange,
  isQuestion,
  type ScriptedArtifact,
  type ScriptedReply,
  type Step,
  turnsOf,
} from "./cassette.ts";
import { ArtifactProgress, messageKey, answeredQuestions } from "./resume.ts";

export interface ScriptedAgentOptions extends Omit<RelayAgentOptions, "id"> {
  /** The agent that answers. Default: the agent that the cassette names. */
  readonly id?: string | undefined;
  /** Called for each turn that was played, before the relay gets its outcome. */
  readonly onPlayed?: ((played: Played) => unknown) | undefined;
  /** What `crash` does. Default: the agent ends as if its process had died, and `ended` rejects. */
  readonly crash?: ((why: RelayError) => void) | undefined;
  /** Waits for a delay; tests may skip it. */
  readonly pause?:
    | ((durationMs: number, options: { readonly signal: AbortSignal }) => Promise<unknown>)
    | undefined;
}

type PlayedOutcome =
  | "replied"
  | "failed"
  | "rejected"
  | "asked"
  | "asked for authorization"
  | "acknowledged"
  | "silent"
  | "crashed";

/** One played turn of an exchange. */
export interface Played {
  readonly message: Message;
  readonly taskId: string | undefined;
  /** Undefined when nothing in the cassette matched. */
  readonly exchange: Exchange | undefined;
  readonly outcome: PlayedOutcome;
}

/** The same after each start, so that a restarted process resumes its leases. */
const WORKER = "scripted";
/** Short, because a successor can go on only after the lease of a crashed agent. */
const LEASE_MS = 3_000;
/** Enough for reports under way. */
const STOP_MS = 500;

/** Starts an agent that answers from the cassette. `await using` or `stop` ends it. */
export async function playCassette(
  options: ScriptedAgentOptions,
  cassette: Cassette,
): Promise<ScriptedAgent> {
  const agent = new ScriptedAgent(options, cassette);
  await agent.start();
  return agent;
}

/** An agent that answers from a cassette. */
export class ScriptedAgent implements AsyncDisposable {
  readonly id: string;
  /** Rejects when the cassette crashed the agent, resolves when it was stopped. */
  readonly ended: Promise<void>;
  /** Resolves when every exchange was played to its end. */
  readonly through: Promise<void>;
  readonly #cassette: Cassette;
  readonly #options: ScriptedAgentOptions;
  readonly #player: CassettePlayer;
  readonly #agent: RelayAgent;
  readonly #stopping = new AbortController();
  readonly #end = Promise.withResolvers<void>();
  readonly #through = Promise.withResolvers<void>();
  /** Exchanges that were begun, by task or message. */
  readonly #open = new Set<string>();
  /** Which turn comes next, by task. */
  readonly #turns = new Map<string, number>();
  /** Messages whose turn is in a delay or silent. */
  readonly #waiting = new Set<string>();
  #hasCrashed = false;

  constructor(options: ScriptedAgentOptions, cassette: Cassette) {
    this.#options = options;
    this.#cassette = cassette;
    this.id = options.id ?? cassette.agent ?? noAgent(cassette);
    this.#player = new CassettePlayer(cassette);
    this.#agent = new RelayAgent({
      // In an ordered cassette only one message can be next; otherwise a silent exchange must not block others.
      concurrency: cassette.mode === "ordered" ? 1 : LIMITS.leaseCountMax,
      worker: WORKER,
      leaseMs: LEASE_MS,
      ...options,
      id: this.id,
      ...(options.onError === undefined ? {} : { onError: withoutScripted(options.onError) }),
    })
      .onTask((task) => this.#playTask(task))
      .onMessage((message) => this.#playMessage(message));
    this.ended = this.#end.promise;
    this.ended.catch(() => undefined);
    this.through = this.#through.promise;
  }

  /** Registers and begins. Open leases of the same worker name come first. */
  async start(): Promise<void> {
    await this.#agent.start({ signal: this.#stopping.signal });
  }

  /** Gives back what is unanswered, unless the cassette crashed the agent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#agent.stop(this.#waiting.size === 0 ? {} : { timeoutMs: STOP_MS });
    this.#end.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #playTask(task: AgentTask): Promise<TaskReply> {
    const cue = await this.#cueOf(task);
    const turn = task.isFollowUp ? await this.#turnOf(task) : 0;
    const turns = turnsOf(cue.steps);
    const pieces = piecesOf(task, turns.slice(0, turn).flat());
    try {
      for (const [index, step] of (turns[turn] ?? turns.at(-1) ?? []).entries()) {
        if (isQuestion(step)) this.#turns.set(task.id, turn + 1);
        const ending = await this.#playStep(task, { ...cue, pieces }, step, `${turn}.${index}`);
        if (ending !== undefined) return ending.reply;
      }
    } catch (reason) {
      if (isOver(task.signal.reason)) this.#close(task.id);
      throw reason;
    }
    return undefined;
  }

  /** The first message of the task chooses the exchange, also for follow-ups. */
  async #cueOf(task: AgentTask): Promise<Cue> {
    const first = task.isFollowUp
      ? (await this.#agent.client.message(task.view.message_id, { signal: task.signal })).message
      : task.message;
    const cue = this.#player.choose(task.id, first);
    if (cue.exchange !== undefined) this.#open.add(task.id);
    return cue;
  }

  /** A message that was sent before the question answers it too, if it is taken after it. */
  async #turnOf(task: AgentTask): Promise<number> {
    const known = this.#turns.get(task.id);
    if (known !== undefined) return known;
    const message = { agentId: this.id, taskId: task.id, messageId: task.message.id };
    return answeredQuestions(this.#agent.client, message, task);
  }

  /** Returns the handler's reply when the step ends the turn. */
  async #playStep(
    task: AgentTask,
    { exchange, pieces }: Cue & { readonly pieces: ArtifactProgress },
    step: Step,
    position: string,
  ): Promise<{ readonly reply: TaskReply } | undefined> {
    const over = async (outcome: PlayedOutcome): Promise<void> =>
      this.#report({ message: task.message, taskId: task.id, exchange, outcome });
    switch (step.act) {
      case "status":
        await task.working(step);
        return undefined;
      case "delay":
        await this.#wait(task.message.id, step.durationMs, task.signal);
        return undefined;
      case "artifact":
        await this.#putArtifact(task, step.artifact, pieces);
        return undefined;
      case "ask":
        task.askInput(step);
        await over("asked");
        return { reply: undefined };
      case "auth":
        task.askAuth(step);
        await over("asked for authorization");
        return { reply: undefined };
      case "message":
        await over("replied");
        return { reply: { ...taskReply(step.reply), plain: true } };
      case "reply":
        await over("replied");
        return { reply: taskReply(step.reply) };
      case "fail":
        task.fail({ text: step.reason, parts: step.parts });
        await over("failed");
        return { reply: undefined };
      case "reject":
        task.reject({ text: step.reason, parts: step.parts });
        await over("rejected");
        return { reply: undefined };
      case "crash":
        if (task.attempt > step.attempts) return undefined;
        await over("crashed");
        return this.#crash(exchange, position);
      case "silence":
        break;
    }
    await over("silent");
    return this.#silence(task.message.id, task.signal);
  }

  async #putArtifact(task: AgentTask, artifact: ScriptedArtifact, pieces: ArtifactProgress): Promise<void> {
    const { id: artifactId, name, description } = artifact;
    let about = {
      ...(name === undefined ? {} : { name }),
      ...(description === undefined ? {} : { description }),
    };
    for (const { parts, append, lastChunk, durationMs } of chunksOf(artifact)) {
      if (durationMs > 0) await this.#wait(task.message.id, durationMs, task.signal);
      if (!pieces.isNew({ artifactId, append, partCount: parts.length })) continue;
      await task.addArtifact({ artifactId, ...about, parts }, { append, lastChunk });
      about = {};
    }
  }

  async #playMessage(received: AgentMessage): Promise<void> {
    const { message, signal } = received;
    // Answers to notices would make loops.
    if (message.from === POSTMASTER) return;
    const { exchange, steps } = this.#player.choose(message.id, message);
    if (exchange === undefined) return;
    this.#open.add(message.id);
    const over = async (outcome: PlayedOutcome): Promise<void> =>
      this.#report({ message, taskId: undefined, exchange, outcome });
    for (const step of steps) {
      if (step.act === "delay") await this.#wait(message.id, step.durationMs, signal);
      if (step.act === "silence") {
        await over("silent");
        await this.#silence(message.id, signal);
      }
      if (step.act === "crash") {
        await over("crashed");
        await this.#crash(exchange, "crash");
      }
      if (step.act === "fail") {
        await over("failed");
        throw new ScriptedFailure(step.reason);
      }
      if (step.act === "reply") {
        await this.#answer(message, step.reply, signal);
        return over("replied");
      }
    }
    await over("acknowledged");
  }

  /** The idempotency key comes from the message's id, so that a redelivered message is answered once. */
  async #answer(message: Message, { text, parts }: ScriptedReply, signal: AbortSignal): Promise<void> {
    const { id, from, thread_id } = message;
    const answer = {
      from: this.id,
      to: from,
      type: "reply",
      reply_to: id,
      thread_id,
      ...(text === undefined ? {} : { body: text }),
      ...(parts === undefined ? {} : { parts: [...parts] }),
      idempotency_key: messageKey("scripted", id),
    } as const;
    await this.#agent.client.send(answer, { signal });
  }

  async #wait(messageId: string, durationMs: number, signal: AbortSignal): Promise<void> {
    const pause = this.#options.pause ?? pauseFor;
    this.#waiting.add(messageId);
    try {
      await pause(durationMs, { signal: AbortSignal.any([signal, this.#stopping.signal]) });
    } catch (reason) {
      // Rejects only after the agent itself is stopping; before that, it would count as a failure of the task.
      if (this.#stopping.signal.aborted) await this.#silence(messageId, signal);
      throw reason;
    } finally {
      this.#waiting.delete(messageId);
    }
  }

  /** Waits until the agent stops or the task ends, then gives the message back. */
  async #silence(messageId: string, signal: AbortSignal): Promise<never> {
    this.#waiting.add(messageId);
    await aborted(signal);
    this.#waiting.delete(messageId);
    if (this.#hasCrashed) return forEver();
    throw signal.reason;
  }

  #crash(exchange: Exchange | undefined, position: string): Promise<never> {
    const where = `${this.#cassette.file}:${exchange?.line ?? 1}`;
    const why = new RelayError("unavailable", `the cassette crashed the agent at ${where}, step ${position}`);
    this.#hasCrashed = true;
    this.#options.crash?.(why);
    this.#end.reject(why);
    this.#stopping.abort();
    void this.#agent.stop({ timeoutMs: 0 });
    return forEver();
  }

  async #report(played: Played): Promise<void> {
    await this.#options.onPlayed?.(played);
    if (played.outcome.startsWith("asked")) return;
    this.#close(played.taskId ?? played.message.id);
  }

  #close(key: string): void {
    this.#open.delete(key);
    this.#turns.delete(key);
    if (this.#player.isThrough && this.#open.size === 0) this.#through.resolve();
  }
}

/** The task ended without this agent: canceled, or its deadline passed. */
function isOver(reason: unknown): boolean {
  return reason instanceof RelayError && ["task_canceled", "task_finished"].includes(reason.code);
}

/** The artifacts of the task, with the parts that earlier turns made. */
function piecesOf({ view }: AgentTask, played: readonly Step[]): ArtifactProgress {
  const pieces = new ArtifactProgress(view);
  for (const step of played) {
    if (step.act !== "artifact") continue;
    const { id: artifactId } = step.artifact;
    for (const { append, parts } of chunksOf(step.artifact)) {
      pieces.count({ artifactId, append, partCount: parts.length });
    }
  }
  return pieces;
}

/** A failure that the cassette asks for; not an error of the agent. */
class ScriptedFailure extends Error {}

function withoutScripted(onError: NonNullable<RelayAgentOptions["onError"]>): typeof onError {
  return (error, activity) => (error instanceof ScriptedFailure ? undefined : onError(error, activity));
}

function taskReply({ text, parts, isPartial }: ScriptedReply): TaskReplyParts {
  return { text, parts, ...(isPartial ? { resultStatus: "partial" } : {}) };
}

function noAgent({ file }: Cassette): never {
  throw new RelayError(
    "invalid_argument",
    `${file}: names no agent; give one as \`agent: zhiwei@studio\` or as id`,
  );
}

function pauseFor(durationMs: number, options: { readonly signal: AbortSignal }): Promise<unknown> {
  return sleep(durationMs, undefined, options);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function forEver(): Promise<never> {
  return new Promise<never>(() => undefined);
}
