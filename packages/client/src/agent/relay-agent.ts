import { type MessageInput, RelayError, type SendResponse } from "@a2a-relay/protocol";
import { RelayClient } from "../client/relay-client.ts";
import { onAbort, pause, settledWithin } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { fillClientOptions, parseInteger } from "../http/relay-client-options.ts";
import { isUnknownAgent, type Patience, untilReached } from "../http/retry.ts";
import { BackgroundErrors } from "./background-errors.ts";
import { createInboxSource } from "./best-inbox-source.ts";
import type { InboxSource } from "./inbox-source.ts";
import { LeaseRenewal } from "./lease-renewal.ts";
import { MessageIntake } from "./message-intake.ts";
import {
  AgentStopping,
  type MessageHandlers,
  MessageWorker,
  type MessageHandler,
  type TaskHandler,
} from "./message-worker.ts";
import {
  DRAIN_MS_RANGE,
  fillAgentOptions,
  type FilledAgentOptions,
  type RelayAgentOptions,
} from "./relay-agent-options.ts";
import { UnconfirmedOutcomes } from "./settlement.ts";
import { AwaitedResults, TaskRequest } from "./task-request.ts";

/** A request without the members that the agent fills in. */
export type AgentRequest = Omit<MessageInput, "from" | "type">;

/** How long handlers may take to end after their signals were aborted. */
const ABORTED_MS = 1_000;

/** Timers of more than 24 days fire at once, so a heartbeat comes at least once a day. */
const HEARTBEAT_MS_MAX = 86_400_000;

/**
 * An agent: it registers, leases its messages, passes tasks and messages to handlers, and reports their outcomes. It
 * may run in any number of processes at once.
 *
 * When the relay delivers a message again whose handler has finished in this process, the agent only reports the
 * outcome again. A process that dies in the middle cannot do that, so senders declare which work may be done twice.
 */
export class RelayAgent {
  readonly id: string;
  /** For all other calls to the relay. */
  readonly client: RelayClient;
  readonly #options: FilledAgentOptions;
  readonly #errors: BackgroundErrors;
  readonly #handlers: MessageHandlers = {};
  readonly #awaited = new AwaitedResults();
  readonly #renewal: LeaseRenewal;
  readonly #source: InboxSource;
  readonly #intake: MessageIntake;
  readonly #patience: Omit<Patience, "signal">;
  /** Aborted first: no new message is begun. */
  readonly #taking = new AbortController();
  /** Aborted last: ends all requests to the relay. */
  readonly #running = new AbortController();
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
      signal: this.#running.signal,
    };
    this.#renewal = new LeaseRenewal({ ...parts, leaseMs: this.#options.leaseMs });
    const worker = new MessageWorker({
      ...parts,
      unconfirmed: new UnconfirmedOutcomes(),
      renewal: this.#renewal,
      awaited: this.#awaited,
      handlers: this.#handlers,
      resumes: this.#options.resumes !== undefined,
    });
    this.#source = createInboxSource(
      { client: this.client, agentId: this.id, options: filled },
      this.#options.transport,
    );
    this.#intake = new MessageIntake({
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
   * Handles tasks and the follow-ups of their requesters. The returned value completes the task, a thrown error fails
   * it. Setting it again replaces it.
   */
  onTask(handler: TaskHandler): this {
    this.#handlers.task = handler;
    return this;
  }

  /**
   * Handles all other messages: notes, alerts, replies, status, notices. A message is acknowledged when the handler has
   * returned; a thrown error makes it dead, and its sender is told. Setting it again replaces it.
   */
  onMessage(handler: MessageHandler): this {
    this.#handlers.message = handler;
    return this;
  }

  /**
   * Registers and starts to lease messages. Retries while the relay is unreachable; `signal` bounds that. Rejects when
   * the relay refuses the registration.
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
   * Leases no more messages, releases those that were not begun, and waits for running handlers, at most `timeoutMs`
   * (default: the option `drainMs`). Then it aborts their signals; they have a second to end. The agent stays
   * registered, and its messages wait for its next start.
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
    this.#background = Promise.all([this.#intake.run(), this.#sendHeartbeats()]);
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { registration } = this.#options;
    await untilReached(() => this.client.register(registration, { signal }), { ...this.#patience, signal });
    this.#errors.recovered("register");
  }

  /** Sends heartbeats while messages are leased. Never rejects. */
  async #sendHeartbeats(): Promise<void> {
    const { ttlMs } = this.#options;
    if (ttlMs === undefined) return;
    const { signal } = this.#taking;
    while (!signal.aborted) {
      await pause(Math.min(ttlMs / 3, HEARTBEAT_MS_MAX), { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.client.heartbeat(this.id, { signal });
        this.#errors.recovered("heartbeat");
      } catch (reason) {
        if (signal.aborted) return;
        this.#errors.report(reason, "heartbeat");
        // A refused registration does not end the heartbeats; the next one registers again.
        if (isUnknownAgent(reason)) await this.#register(signal).catch(() => undefined);
      }
    }
  }

  async #stop(drainMs: number): Promise<void> {
    this.#taking.abort(new AgentStopping());
    await this.#started?.catch(() => undefined);
    await this.#background;
    // First, so that nothing more is leased while lost leases are released.
    await this.#source.close();
    const { signal } = this.#running;
    const released = this.#intake.releaseUnbegun({ signal }).catch((reason: unknown) => {
      if (!signal.aborted) this.#errors.report(reason, "lease");
    });
    const ended = Promise.all([released, this.#intake.idle()]);
    await settledWithin(drainMs, ended);
    this.#renewal.loseAll(new AgentStopping());
    await settledWithin(ABORTED_MS, ended);
    this.#running.abort(new AgentStopping());
  }
}
