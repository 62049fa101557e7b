import { LIMITS, type PushMode } from "@a2a-relay/protocol";
import { combine, decideAndCommit } from "../mechanisms/commit-retry.ts";
import { mailboxTopic, PUSH_ENDPOINTS_TOPIC, type Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { Outbound, PushOutcome } from "../ports/outbound.ts";
import type { EndpointKey, PushEndpoint, PushRecord } from "../ports/pushes.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { isSameEndpoint, whyDropped, withoutDeadSecret } from "../registration/push-endpoint.ts";
import { attemptsAllowed } from "../rules/circuit-breaker.ts";
import { freeReservations } from "../rules/task-changes.ts";
import { A2aSender, type A2aSenderSettings, unknownReason } from "./a2a-sender.ts";
import { type DueWork, firstAttemptAtMs } from "./outbound-schedule.ts";
import {
  arrivedChanges,
  type AttemptReport,
  failedChanges,
  type PushedMessage,
  type PushSender,
} from "./push-outcome.ts";
import { dropped, dropReason, enqueued, mayHaveArrived } from "./push-round.ts";
import { WebhookSender } from "./webhook-sender.ts";

export interface PushParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly outbound: Outbound;
}

export interface PushDeliveryParts extends PushParts {
  readonly ids: Identifiers;
}

export interface PushSettings {
  /** When attempts are made, counted from the first. */
  readonly pushAttemptsMs: readonly number[];
}

/** `idle`: there was nothing to send, or the relay stopped; no attempt is recorded. */
export type AttemptResult = PushOutcome["kind"] | "dropped" | "idle";

/** An attempt that has ended and is not recorded yet. */
export interface EndedAttempt {
  /** The endpoint when the request was made. */
  readonly sent: PushEndpoint;
  readonly push: PushRecord;
  readonly report: AttemptReport;
  readonly atMs: number;
  readonly endedAtMs: number;
}

/** The relay ended between the request and its answer. */
const NO_ANSWER_KEPT: AttemptReport = {
  status: null,
  error: "the relay ended while it waited for the answer",
  answer: null,
  outcome: {
    kind: "unknown",
    reason: unknownReason("the relay ended before there was an answer"),
  },
};

/** Pushes written in one commit: few enough that other commits do not wait long. */
const PUSHES_TOGETHER_MAX = 100;
const ENDPOINTS_MAX = 500;
const ANY_TIME = Number.MAX_SAFE_INTEGER;

/**
 * Pushes messages to the endpoints of agents, over webhooks and A2A: `enqueue` → `chooseDue` → `attempt` → `record`.
 * All state is in the store, so that another process can continue at any step.
 */
export class PushDelivery {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #settings: PushSettings;
  readonly #senders: Readonly<Record<PushMode, PushSender>>;

  constructor(parts: PushDeliveryParts, settings: PushSettings & A2aSenderSettings) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#settings = settings;
    this.#senders = {
      webhook: new WebhookSender(parts.outbound),
      a2a: new A2aSender(parts, settings),
    };
  }

  watchEndpoints(): Watch {
    return this.#store.feed.watch(PUSH_ENDPOINTS_TOPIC, { isOwn: true });
  }

  watchMailbox({ tenant, agentId }: EndpointKey): Watch {
    return this.#store.feed.watch(mailboxTopic(tenant, agentId), { isOwn: true });
  }

  activeEndpoints(): AsyncGenerator<PushEndpoint> {
    return this.#pages((after) =>
      this.#store.endpoints.list({ state: "active", after, limit: ENDPOINTS_MAX }),
    );
  }

  /** Disabled endpoints with pending pushes: the relay stopped before it dropped them. */
  disabledEndpoints(): AsyncGenerator<PushEndpoint> {
    return this.#pages((after) =>
      this.#store.endpoints.list({ state: "disabled", after, limit: ENDPOINTS_MAX }),
    );
  }

  /** Makes pushes of the messages behind the cursor and moves the cursor. True while there may be more. */
  async enqueue({ tenant, agentId }: EndpointKey): Promise<boolean> {
    return decideAndCommit(this.#store, async () => {
      const endpoint = await this.#store.endpoints.get(tenant, agentId);
      if (endpoint?.state !== "active") return { changes: undefined, answer: false };
      const nowMs = this.#clock.nowMs();
      const messages = await messagesAfter(this.#store, endpoint, endpoint.afterPosition, nowMs);
      const last = messages.at(-1);
      const kept = withoutDeadSecret(endpoint, nowMs);
      if (last === undefined) {
        const changes = kept === endpoint ? undefined : { tenant, pushProgress: [kept], events: [] };
        return { changes, answer: false };
      }
      const pushes = await this.#enqueued(tenant, messages);
      const moved = { ...kept, afterPosition: last.delivery.position };
      return { changes: { tenant, pushes, pushProgress: [moved], events: [] }, answer: true };
    });
  }

  /** Chooses ids of messages to push now, beside those under way. The circuit breaker and `attemptsMax` limit both. */
  async chooseDue(
    { tenant, agentId }: EndpointKey,
    underWay: ReadonlySet<string>,
    attemptsMax: number,
  ): Promise<DueWork<string>> {
    const endpoint = await this.#store.endpoints.get(tenant, agentId);
    if (endpoint?.state !== "active") return { due: [], waitMs: Infinity };
    const nowMs = this.#clock.nowMs();
    // One more than can be under way, so that the page always shows one that is not, if there is any.
    const first = await this.#store.pushes.due(tenant, agentId, ANY_TIME, LIMITS.pushesOfEndpointMax + 1);
    const others = first.filter(({ messageId }) => !underWay.has(messageId));
    const room = Math.max(attemptsAllowed(endpoint, nowMs, attemptsMax) - underWay.size, 0);
    const due = others.filter((push) => isDue(push, nowMs)).slice(0, room);
    const next = others[due.length];
    const isOpen = endpoint.openUntilMs !== null && nowMs < endpoint.openUntilMs;
    const nextAtMs = isOpen ? endpoint.openUntilMs : next?.nextAtMs;
    // A due push without room waits for the end of another attempt, not for a time.
    const isTimed = next !== undefined && nextAtMs != null && nextAtMs > nowMs;
    const nextMs = isTimed ? nextAtMs - nowMs : Infinity;
    // `enqueue` removes an expired secret, so it must run then.
    const secretMs = (endpoint.oldSecretUntilMs ?? Infinity) - nowMs;
    return { due: due.map(({ messageId }) => messageId), waitMs: Math.min(nextMs, Math.max(secretMs, 0)) };
  }

  /** Checks that the message is still available, then calls the endpoint. The caller records the outcome. */
  async attempt(
    { tenant, agentId }: EndpointKey,
    messageId: string,
    signal: AbortSignal,
  ): Promise<EndedAttempt | "dropped" | "idle"> {
    const endpoint = await this.#store.endpoints.get(tenant, agentId);
    const [push] = await this.#store.pushes.get(tenant, [messageId]);
    if (signal.aborted || endpoint?.state !== "active" || push?.state !== "pending") return "idle";
    const [delivery] = await this.#store.deliveries.get(tenant, [messageId]);
    const [message] = await this.#store.messages.get(tenant, [messageId]);
    const atMs = this.#clock.nowMs();
    if (delivery === undefined || message === undefined || dropReason(delivery, atMs) !== undefined) {
      return this.#drop(push);
    }
    const sender = this.#senders[endpoint.mode];
    const options = { nowMs: atMs, markSent: () => this.#markSent(push), signal };
    const report = mayHaveArrived(push, delivery)
      ? NO_ANSWER_KEPT
      : await sender.attempt(endpoint, { delivery, message }, options);
    if (report === undefined) return "idle";
    return { sent: endpoint, push, report, atMs, endedAtMs: this.#clock.nowMs() };
  }

  /** Commits the attempt and its outcome. Safe to call again after an error: an attempt is never written twice. */
  async record({ sent, push: before, report, atMs, endedAtMs }: EndedAttempt): Promise<PushOutcome["kind"]> {
    const { tenant, agentId, messageId } = before;
    const { outcome, status, error, answer: answered } = report;
    const isSame = await decideAndCommit(this.#store, async () => {
      const [push] = await this.#store.pushes.get(tenant, [messageId]);
      const endpoint = await this.#store.endpoints.get(tenant, agentId);
      const answer = endpoint !== undefined && isSameEndpoint(endpoint, sent);
      // Retention may have deleted the message and its push meanwhile.
      if (push === undefined || push.attempts > before.attempts) return { changes: undefined, answer };
      const attempt = push.attempts + 1;
      const durationMs = endedAtMs - atMs;
      // A store may be unable to keep U+0000.
      const shown = answered?.replaceAll("\0", "\uFFFD") ?? null;
      const made = { tenant, messageId, attempt, atMs, durationMs, status, error, answer: shown };
      const [delivery] = await this.#store.deliveries.get(tenant, [messageId]);
      const parts = await this.#outcomeChanges({ push, delivery, endpoint }, sent, outcome, endedAtMs);
      const [after = push] = parts.flatMap(({ pushes = [] }) => pushes);
      const recorded = { report, push: after, delivery, nowMs: endedAtMs };
      const more = (await this.#senders[sent.mode].changesAfter?.(recorded)) ?? {};
      return { changes: combine(tenant, [{ pushAttempts: [made] }, ...parts, more]), answer };
    });
    if (isSame && outcome.kind === "delivered") {
      await this.#store.agents.touch(tenant, agentId, this.#clock.nowMs());
    }
    return outcome.kind;
  }

  /** Drops pending pushes of a disabled endpoint. True while there may be more. */
  async dropPending({ tenant, agentId }: EndpointKey): Promise<boolean> {
    return decideAndCommit(this.#store, async () => {
      const endpoint = await this.#store.endpoints.get(tenant, agentId);
      if (endpoint === undefined || endpoint.state === "active") return { changes: undefined, answer: false };
      const pending = await this.#store.pushes.due(tenant, agentId, ANY_TIME, PUSHES_TOGETHER_MAX);
      if (pending.length === 0) return { changes: undefined, answer: false };
      const pushes = pending.map((push) => dropped(push, whyDropped(endpoint)));
      // Unchanged, only to check its version: an endpoint enabled meanwhile enqueues the dropped pushes again.
      return { changes: { tenant, pushes, pushProgress: [endpoint], events: [] }, answer: true };
    });
  }

  async *#pages(
    read: (after: PushEndpoint | undefined) => Promise<readonly PushEndpoint[]>,
  ): AsyncGenerator<PushEndpoint> {
    let last: PushEndpoint | undefined;
    do {
      const page = await read(last);
      yield* page;
      last = page.length < ENDPOINTS_MAX ? undefined : page.at(-1);
    } while (last !== undefined);
  }

  async #enqueued(tenant: string, messages: readonly MailboxMessage[]): Promise<readonly PushRecord[]> {
    const nowMs = this.#clock.nowMs();
    const ids = messages.map(({ delivery }) => delivery.messageId);
    const before = await this.#store.pushes.get(tenant, ids);
    return messages.flatMap(({ delivery, message }, index) => {
      const firstAtMs = firstAttemptAtMs(message.acceptedAtMs, this.#settings.pushAttemptsMs);
      return enqueued(before[index], delivery, { nowMs, firstAtMs }) ?? [];
    });
  }

  /** No request and no attempt: another reader has the message. `idle` when it is available again. */
  async #drop({ tenant, messageId }: PushRecord): Promise<"dropped" | "idle"> {
    return decideAndCommit(this.#store, async () => {
      const [push] = await this.#store.pushes.get(tenant, [messageId]);
      if (push?.state !== "pending") return { changes: undefined, answer: "idle" };
      const [message] = await this.#store.messages.get(tenant, [messageId]);
      const delivery =
        message === undefined ? undefined : (await this.#store.deliveries.get(tenant, [messageId]))[0];
      const reason = dropReason(delivery, this.#clock.nowMs());
      if (reason === undefined) return { changes: undefined, answer: "idle" };
      return { changes: { tenant, pushes: [dropped(push, reason)], events: [] }, answer: "dropped" };
    });
  }

  async #markSent({ tenant, messageId }: PushRecord): Promise<boolean> {
    return decideAndCommit(this.#store, async () => {
      const [push] = await this.#store.pushes.get(tenant, [messageId]);
      if (push?.state !== "pending") return { changes: undefined, answer: false };
      const sent = { ...push, sentAtMs: this.#clock.nowMs() };
      return { changes: { tenant, pushes: [sent], events: [] }, answer: true };
    });
  }

  async #outcomeChanges(
    pushed: PushedMessage,
    sent: PushEndpoint,
    outcome: PushOutcome,
    nowMs: number,
  ): Promise<readonly Partial<Changes>[]> {
    if (outcome.kind !== "delivered") {
      return [failedChanges(pushed, sent, outcome, { nowMs, offsetsMs: this.#settings.pushAttemptsMs })];
    }
    const arrived = arrivedChanges(pushed, sent, nowMs);
    const settled = arrived.deliveries?.find(({ state }) => state === "acknowledged");
    return settled === undefined ? [arrived] : [arrived, await freeReservations(this.#store, settled)];
  }
}

/** Available messages behind a position, as many as one commit writes. */
export function messagesAfter(
  store: RelayStore,
  { tenant, agentId }: EndpointKey,
  afterPosition: number,
  nowMs: number,
): Promise<readonly MailboxMessage[]> {
  const page = { limit: PUSHES_TOGETHER_MAX, bytesMax: LIMITS.answerBytesMax };
  return store.deliveries.available({ tenant, agentId, afterPosition, nowMs, ...page });
}

function isDue({ nextAtMs }: PushRecord, nowMs: number): boolean {
  return nextAtMs !== null && nextAtMs <= nowMs;
}
