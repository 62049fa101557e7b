import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  LIMITS,
  type LeaseRef,
  type LeaseResponse,
  type MessageInput,
  RelayError,
} from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import { createKeepTrying, type KeepTrying } from "../../following/keep-trying.ts";
import { Notifier } from "../../following/notifier.ts";
import { visibleLine } from "../../terminal/text.ts";
import type { MessageFilter } from "../messages/message-filter.ts";
import { replySubject } from "../messages/message-text.ts";
import { decideVerdict, pauseAfterFailuresMs, type Verdict, runMessageProgram } from "./message-program.ts";

interface ExecOptions {
  readonly agent: string;
  readonly argv: readonly string[];
  readonly filter: MessageFilter;
  readonly reply: boolean;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly timeoutMs: number | undefined;
  readonly attemptsMax: number | undefined;
}

type LeasedItem = LeaseResponse["messages"][number];

// After Ctrl-C the relay must still hear the outcome of a message, but within this time.
const SETTLE_MS_MAX = 5_000;

const INTERRUPT = "an interrupt";
const LEASE_LOST = "the loss of its lease";

/** Leases one message after the other and runs a program for each. */
export class ExecWorker implements Disposable {
  readonly #context: CommandContext;
  readonly #options: ExecOptions;
  readonly #worker = `watch-${randomUUID()}`;
  readonly #keepTrying: KeepTrying;
  readonly #notifier: Notifier;
  #failures = 0;
  /** The relay may have granted a lease whose answer was lost. */
  #mayHaveStranded = false;

  constructor(context: CommandContext, options: ExecOptions) {
    this.#context = context;
    this.#options = options;
    this.#keepTrying = createKeepTrying(context);
    const { agent, waitMs } = options;
    this.#notifier = new Notifier(context, { agent, waitMs, keepTrying: this.#keepTrying });
  }

  [Symbol.dispose](): void {
    this.#notifier[Symbol.dispose]();
  }

  /** Waits for the next message and handles it. False when its program failed. */
  async handleNext(): Promise<boolean> {
    await sleep(pauseAfterFailuresMs(this.#failures), undefined, { signal: this.#context.signal });
    const item = await this.#take();
    const refusal = this.#options.filter(item.message);
    if (refusal !== undefined) {
      await this.#settle(item, { act: "fail", why: refusal });
      return true;
    }
    const { signal } = this.#context;
    const verdict = signal.aborted ? ({ act: "release", why: INTERRUPT } as const) : await this.#run(item);
    if (verdict !== undefined) await this.#settle(item, verdict);
    const failed = verdict === undefined || verdict.act === "release" || verdict.act === "fail";
    this.#failures = failed ? this.#failures + 1 : 0;
    signal.throwIfAborted();
    return !failed;
  }

  /**
   * Leases without waiting, and waits without leasing: an interrupted wait must not leave a message under a lease that
   * this worker does not know.
   */
  async #take(): Promise<LeasedItem> {
    const { agent, leaseMs } = this.#options;
    for (;;) {
      const { notices } = this.#notifier;
      const [item] = await this.#keepTrying(() => this.#lease(agent, leaseMs));
      if (item !== undefined) return item;
      await this.#notifier.noticeAfter(notices);
    }
  }

  async #lease(agent: string, leaseMs: number): Promise<LeaseResponse["messages"]> {
    const { client } = this.#context;
    if (this.#mayHaveStranded) await this.#releaseStranded();
    try {
      const { messages } = await client.lease(agent, { max: 1, lease_ms: leaseMs, worker: this.#worker });
      return messages;
    } catch (reason) {
      this.#mayHaveStranded = true;
      // At once, because the next lease may never be asked for.
      await this.#releaseStranded().catch(() => undefined);
      throw reason;
    }
  }

  /** Releases leases that the relay granted to this worker in answers that were lost. */
  async #releaseStranded(): Promise<void> {
    const { client } = this.#context;
    const { agent } = this.#options;
    try {
      const { entries } = await client.queue({ agent, state: "leased", limit: LIMITS.listLimitMax });
      const leases = entries.flatMap(({ message_id, lease }) =>
        lease?.worker === this.#worker ? [{ message_id, lease_id: lease.id }] : [],
      );
      if (leases.length > 0) await client.release(agent, { leases });
    } catch (reason) {
      if (!(reason instanceof RelayError) || reason.code === "unavailable") throw reason;
      // A caller that may not read the queue leaves this to an operator.
    }
    this.#mayHaveStranded = false;
  }

  /** What to do with the message; undefined when the lease is lost. */
  async #run(item: LeasedItem): Promise<Verdict | undefined> {
    const { io, output, signal, connection } = this.#context;
    const { argv, reply, timeoutMs, attemptsMax } = this.#options;
    const ending = new AbortController();
    const onInterrupt = (): void => ending.abort(INTERRUPT);
    signal.addEventListener("abort", onInterrupt, { once: true });
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(() => ending.abort("its time limit"), timeoutMs);
    const renewing = this.#renew(item, ending);
    try {
      const result = await runMessageProgram({
        argv,
        item,
        env: { ...io.env, A2A_RELAY_URL: connection.url },
        capture: reply,
        stdout: output.json ? io.stderr : io.stdout,
        stderr: io.stderr,
        signal: ending.signal,
      });
      if (ending.signal.reason === LEASE_LOST) return undefined;
      // An interrupted program has not failed: the message waits for the next attempt.
      const limit = ending.signal.reason === INTERRUPT ? undefined : attemptsMax;
      const isTask = item.task_id !== undefined;
      return decideVerdict(result, { reply, isTask, attempt: item.lease.attempt, attemptsMax: limit });
    } catch (reason) {
      // A program that cannot be started is the operator's mistake; the message goes back.
      await this.#settle(item, { act: "release", why: "the program could not be started" });
      throw reason;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onInterrupt);
      ending.abort();
      await renewing;
    }
  }

  /** Keeps the lease while the program runs, and ends the program when the lease is lost. Never rejects. */
  async #renew(item: LeasedItem, ending: AbortController): Promise<void> {
    const { client, output } = this.#context;
    const { agent, leaseMs } = this.#options;
    const { signal } = ending;
    const request = { leases: [refOf(item)], lease_ms: leaseMs };
    while (!signal.aborted) {
      try {
        await sleep(leaseMs / 3, undefined, { signal });
        const { results } = await client.renew(agent, request, { signal });
        const [result] = results;
        if (result?.ok !== false) continue;
        ending.abort(LEASE_LOST);
        await output.note(visibleLine(`${item.message_id}: ended its program: ${result.error.message}`));
      } catch {
        // Ended, or the relay cannot be reached: the lease holds until another worker takes it over.
      }
    }
  }

  async #settle(item: LeasedItem, verdict: Verdict): Promise<void> {
    const { output } = this.#context;
    const { message_id: messageId } = item;
    try {
      await this.#untilTold(item, verdict);
    } catch (reason) {
      if (!(reason instanceof RelayError)) throw reason;
      await output.error(visibleLine(`${messageId}: could not ${verdict.act}: ${reason.message}`));
      return;
    }
    const { act } = verdict;
    const why = "why" in verdict ? verdict.why : undefined;
    const line = visibleLine(`${messageId}: ${PAST[act]}${why === undefined ? "" : `, ${why}`}`);
    if (output.json) {
      await output.showNext(
        {
          message_id: messageId,
          outcome: PAST[act],
          attempt: item.lease.attempt,
          ...(why === undefined ? {} : { why }),
        },
        () => [],
      );
    } else {
      await output.note(line);
    }
  }

  /** Repeats until the relay has heard it; after an interrupt only for SETTLE_MS_MAX. */
  async #untilTold(item: LeasedItem, verdict: Verdict): Promise<void> {
    const { signal } = this.#context;
    try {
      signal.throwIfAborted();
      await this.#keepTrying(() => this.#tell(item, verdict, { signal }));
    } catch (reason) {
      if (!signal.aborted) throw reason;
      await this.#tell(item, verdict, { signal: AbortSignal.timeout(SETTLE_MS_MAX) });
    }
  }

  /** Safe to repeat. */
  async #tell(item: LeasedItem, verdict: Verdict, call: { readonly signal: AbortSignal }): Promise<void> {
    const { client } = this.#context;
    const { agent } = this.#options;
    const { message_id, lease_id } = refOf(item);
    switch (verdict.act) {
      case "complete":
        await client.completeTask(item.task_id ?? "", { text: verdict.text, lease_id }, call);
        return;
      case "reply":
        await client.send(replyTo(item, verdict.text), call);
        await this.#acknowledge(item, call);
        return;
      case "acknowledge":
        await this.#acknowledge(item, call);
        return;
      case "release":
        await client.release(agent, { leases: [refOf(item)] }, call);
        return;
      case "fail":
        await client.failMessage(agent, { message_id, lease_id, reason: verdict.why }, call);
    }
  }

  async #acknowledge(item: LeasedItem, call: { readonly signal: AbortSignal }): Promise<void> {
    const { results } = await this.#context.client.ack(this.#options.agent, { leases: [refOf(item)] }, call);
    const [result] = results;
    if (result?.ok === false) throw new RelayError(result.error.code, result.error.message);
  }
}

const PAST = {
  acknowledge: "acknowledged",
  complete: "completed",
  reply: "replied",
  release: "released",
  fail: "failed",
} as const satisfies Record<Verdict["act"], string>;

function refOf(item: LeasedItem): LeaseRef {
  return { message_id: item.message_id, lease_id: item.lease.id };
}

function replyTo({ message, lease }: LeasedItem, text: string): MessageInput {
  return {
    from: message.to,
    to: message.from,
    type: "reply",
    reply_to: message.id,
    thread_id: message.thread_id,
    subject: replySubject(message.subject),
    body: text,
    idempotency_key: `reply-${lease.id}`,
  };
}
