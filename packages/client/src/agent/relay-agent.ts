import { type MessageInput, RelayError, type SendResponse } from "@a2a-relay/protocol";
import { RelayClient } from "../client/relay-client.ts";
import { onAbort, pause, settledWithin } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { fillClientOptions, parseInteger } from "../http/relay-client-options.ts";
import { isUnknownAgent, type Patience, untilReached } from "../http/retry.ts";
import { BackgroundErrors } from "./background-errors.ts";
import { createMailSource } from "./best-inbox-source.ts";
import type { InboxSource } from "./inbox-source.ts";
import { LeaseRenewal } from "./lease-renewal.ts";
import { MailIntake } from "./message-intake.ts";
import { AgentStopping, type MailHandlers, MailWorker, type MessageHandler, type TaskHandler } from "./message-worker.ts";
import { DRAIN_MS_RANGE, fillAgentOptions, type FilledAgentOptions, type RelayAgentOptions } from "./relay-agent-options.ts";
import { FinishedMail } from "./settlement.ts";
import { AwaitedResults, TaskRequest } from "./task-request.ts";

/** What this agent asks for: a message without what the agent fills in. */
export type AgentRequest = Omit<MessageInput, "from" | "type">;

/** How long handlers have after their signals were aborted: enough to notice, and to tell the relay. */
const ABORTED_MS = 1_000;

/** Timers of more than 24 days fire at once, and a day without a sign of life is long enough. */
const BEAT_MS_MAX = 86_400_000;

/**
 * An agent: it registers, takes its mail under leases, hands tasks and messages to handlers, and tells the
 * relay what became of them. It may run in any number of processes at once.
 *
 * A handler's work is done once as far as acknowledgements reach: should the relay deliver a message again
 * whose handler has finished in this process, only its outcome is told again. A process that dies in the
 * middle cannot promise that, so senders say which work may be done twice.
 */
export class RelayAgent {
  readonly id: string;
  /** For everything that is not about this agent's own mail. */
  readonly client: RelayClient;
  readonly #options: FilledAgentOptions;
  readonly #errors: BackgroundErrors;
  readonly #handlers: MailHandlers = {};
  readonly #awaited = new AwaitedResults();
  readonly #renewal: LeaseRenewal;
  readonly #source: InboxSource;
  readonly #intake: MailIntake;
  readonly #patience: Omit<Patience, "signal">;
  /** Aborted first: nothing new is begun. */
  readonly #taking = new AbortController();
  /** Aborted last: the relay is left alone from then on. */
  readonly #life = new AbortController();
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #background: Promise<unknown> = Promise.resolve();

  constructor(options: RelayAgentOptions) {
    const filled = fillClientOptions(options);
    const { retryDelayMs: firstMs, retryDelayMsMax: maxMs } = filled;
    this.#options = fillAgentOptions(options);
    this.id = this.#options.id;
    this.client = new RelayClient(options);
    this.#errors = new BackgroundErrors(this.id, options.onError);
    this.#patience = {
      delays: { firstMs, maxMs },
      onAway: (error) => this.#errors.report(error, "register"),
    };
    const parts = {
      client: this.client,
      agentId: this.id,
      delays: this.#patience.delays,
      errors: this.#errors,
      signal: this.#life.signal,
    };
    this.#renewal = new LeaseRenewal({ ...parts, leaseMs: this.#options.leaseMs });
    const worker = new MailWorker({
      ...parts,
      finished: new FinishedMail(),
      renewal: this.#renewal,
      awaited: this.#awaited,
      handlers: this.#handlers,
      resumes: this.#options.resumes !== undefined,
    });
    this.#source = createMailSource(
      { client: this.client, agentId: this.id, options: filled },
      this.#options.transport,
    );
    this.#intake = new MailIntake({
      ...parts,
      source: this.#source,
      options: this.#options,
      renewal: this.#renewal,
      work: (item) => worker.work(item),
      register: () => this.#register(this.#taking.signal),
      signal: this.#taking.signal,
    });
  }

  /**
   * Handles the tasks this agent is asked to do, and what their requesters add later. The returned value
   * completes the task, a thrown error fails it. Setting it again replaces it.
   */
  onTask(handler: TaskHandler): this {
    this.#handlers.task = handler;
    return this;
  }

  /**
   * Handles all other mail: notes, alerts, replies, status, notices. It is acknowledged when the handler has
   * returned; a thrown error makes it dead, and its sender is told. Setting it again replaces it.
   */
  onMessage(handler: MessageHandler): this {
    this.#handlers.message = handler;
    return this;
  }

  /**
   * Registers and begins to take mail. While the relay is away it keeps trying; `signal` bounds that. Rejects
   * when the relay refuses the registration.
   */
  start(options: CallOptions = {}): Promise<void> {
    if (this.#stopped !== undefined) {
      return Promise.reject(new RelayError("wrong_state", `${this.id} was stopped; make a new RelayAgent`));
    }
    this.#started ??= this.#start(options).catch((reason: unknown) => {
      this.#started = undefined;
      throw reason;
    });
    return this.#started;
  }

  /**
   * Takes no more mail, gives back what was not begun, and waits for the handlers at work, at most `timeoutMs`
   * (default: the option `drainMs`). Then their signals are aborted; they have a second to end. The agent
   * stays registered and its mail waits for its next start.
   */
  stop(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const drainMs = parseInteger("timeoutMs", options.timeoutMs ?? this.#options.drainMs, DRAIN_MS_RANGE);
    this.#stopped ??= this.#stop(drainMs);
    return this.#stopped;
  }

  /** Sends a message as this agent; a note unless `type` says otherwise. */
  send(message: Omit<MessageInput, "from">, options: CallOptions = {}): Promise<SendResponse> {
    return this.client.send({ ...message, from: this.id }, options);
  }

  /** Asks another agent to do something. `(await agent.request(…)).result()` waits for the answer. */
  async request(message: AgentRequest, options: CallOptions = {}): Promise<TaskRequest> {
    const request = { ...message, from: this.id, type: "request" } as const;
    const { receipt } = await this.client.send(request, options);
    this.#awaited.remember(receipt.task_id ?? "");
    return new TaskRequest(receipt, this.client, this.#awaited);
  }

  async #start(options: CallOptions): Promise<void> {
    const { signal } = options;
    const starting = new AbortController();
    const taking = this.#taking.signal;
    const unsubscribes = [
      onAbort(taking, () => starting.abort(taking.reason)),
      onAbort(signal, () => starting.abort(signal?.reason)),
    ];
    try {
      signal?.throwIfAborted();
      await this.#register(starting.signal);
    } finally {
      for (const unsubscribe of unsubscribes) unsubscribe();
    }
    this.#background = Promise.all([this.#intake.run(), this.#beat()]);
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { registration } = this.#options;
    await untilReached(() => this.client.register(registration, { signal }), { ...this.#patience, signal });
    this.#errors.recovered("register");
  }

  /** Signs of life for as long as mail is taken. Never rejects. */
  async #beat(): Promise<void> {
    const { ttlMs } = this.#options;
    if (ttlMs === undefined) return;
    const { signal } = this.#taking;
    while (!signal.aborted) {
      await pause(Math.min(ttlMs / 3, BEAT_MS_MAX), { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.client.heartbeat(this.id, { signal });
        this.#errors.recovered("heartbeat");
      } catch (reason) {
        if (signal.aborted) return;
        this.#errors.report(reason, "heartbeat");
        // One refused registration does not end the heartbeats; the next one tries again.
        if (isUnknownAgent(reason)) await this.#register(signal).catch(() => undefined);
      }
    }
  }

  async #stop(drainMs: number): Promise<void> {
    this.#taking.abort(new AgentStopping());
    await this.#started?.catch(() => undefined);
    await this.#background;
    // First, so that nothing is leased any more when what was leased unheard is looked for.
    await this.#source.close();
    const { signal } = this.#life;
    const released = this.#intake.releaseUnbegun({ signal }).catch((reason: unknown) => {
      if (!signal.aborted) this.#errors.report(reason, "lease");
    });
    const ended = Promise.all([released, this.#intake.idle()]);
    await settledWithin(drainMs, ended);
    this.#renewal.loseAll(new AgentStopping());
    await settledWithin(ABORTED_MS, ended);
    this.#life.abort(new AgentStopping());
  }
}
