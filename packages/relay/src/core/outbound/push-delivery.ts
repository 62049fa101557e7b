import { LIMITS, type PushMode } from "@a2a-relay/protocol";
import { mailboxTopic, PUSH_ENDPOINTS_TOPIC, type Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { Outbound } from "../ports/outbound-http.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { MailboxMessage, MailboxStore } from "../ports/deliveries.ts";
import { A2aSender, type A2aSenderSettings } from "./a2a-sender.ts";
import { unknownReason } from "./remote-calls.ts";
import { freeReservations } from "../rules/task-changes.ts";
import { attemptsAllowed } from "../rules/circuit-breaker.ts";
import {
  arrivedChanges,
  failedChanges,
  type PushedMessage,
  type PushOutcome,
  type PushSender,
  type Tried,
} from "./push-outcome.ts";
import { isSameEndpoint, whyDropped, withoutDeadSecret } from "../registration/push-endpoint.ts";
import type { EndpointKey, PushEndpoint, PushRecord } from "../ports/pushes.ts";
import { dropped, dropReason, isLost, takenUp } from "./push-round.ts";
import { firstAttemptAtMs } from "./outbound-schedule.ts";
import { WebhookSender, type WebhookSettings } from "./webhook-sender.ts";

export interface PushParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly outbound: Outbound;
}

export interface PushDeliveryParts extends PushParts {
  readonly ids: Identifiers;
}

export interface PushSettings extends WebhookSettings {
  /** When attempts are made, counted from the first. */
  readonly pushAttemptsMs: readonly number[];
}

/** What there is to do for an endpoint. */
export interface PushAgenda {
  /** Messages to be tried now. */
  readonly due: readonly string[];
  /** How long nothing else falls due, unless something changes. */
  readonly waitMs: number;
}

/** `idle`: there was nothing to try, or it was stopped; nothing is on record of it. */
export type AttemptResult = PushOutcome["kind"] | "dropped" | "idle";

/** A request that has ended and is not on record yet. */
export interface EndedAttempt {
  readonly sent: PushEndpoint;
  readonly push: PushRecord;
  readonly tried: Tried;
  readonly atMs: number;
  readonly endedAtMs: number;
}

/** The relay ended between the request and its answer. */
const NEVER_HEARD_OF: Tried = {
  status: null,
  error: "the relay ended while it waited for the answer",
  answer: null,
  outcome: {
    kind: "unknown",
    reason: unknownReason("the relay ended before there was an answer"),
  },
};

const ENDPOINTS_MAX = 500;
const ANY_TIME = Number.MAX_SAFE_INTEGER;

/** Takes mail to where agents are called. All of it is on disk, so that whoever comes next goes on from there. */
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
      webhook: new WebhookSender(parts.outbound, settings),
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
    return this.#pages((after) => this.#store.activePushEndpoints(after, ENDPOINTS_MAX));
  }

  /** Those that are called no more, with pushes that nobody has dropped yet: the relay was stopped before that. */
  leftEndpoints(): AsyncGenerator<PushEndpoint> {
    return this.#pages((after) => this.#store.leftPushEndpoints(after, ENDPOINTS_MAX));
  }

  /** MailboxMessage behind the cursor becomes pushes, and the cursor moves, in one commit. True while there may be more. */
  async takeUp({ tenant, agentId }: EndpointKey): Promise<boolean> {
    return decideAndCommit(this.#store, async () => {
      const endpoint = await this.#store.pushEndpoint(tenant, agentId);
      if (endpoint?.state !== "active") return { changes: undefined, answer: false };
      const mail = await messagesAfter(this.#store, endpoint, endpoint.afterPosition, this.#clock.nowMs());
      const last = mail.at(-1);
      const kept = withoutDeadSecret(endpoint, this.#clock.nowMs());
      if (last === undefined) {
        const changes = kept === endpoint ? undefined : { tenant, pushProgress: [kept], events: [] };
        return { changes, answer: false };
      }
      const pushes = await this.#takenUp(mail);
      const moved = { ...kept, afterPosition: last.delivery.position };
      return { changes: { tenant, pushes, pushProgress: [moved], events: [] }, answer: true };
    });
  }

  /** What to try next beside what is under way, and when to look again. */
  async agenda(
    { tenant, agentId }: EndpointKey,
    underWay: ReadonlySet<string>,
    attemptsMax: number,
  ): Promise<PushAgenda> {
    const endpoint = await this.#store.pushEndpoint(tenant, agentId);
    if (endpoint?.state !== "active") return { due: [], waitMs: Infinity };
    const nowMs = this.#clock.nowMs();
    // One more than can be under way, so that there is always one to see that is not, if there is one at all.
    const first = await this.#store.duePushes(tenant, agentId, ANY_TIME, LIMITS.pushesOfEndpointMax + 1);
    const waiting = first.filter(({ messageId }) => !underWay.has(messageId));
    const room = Math.max(attemptsAllowed(endpoint, nowMs, attemptsMax) - underWay.size, 0);
    const due = waiting.filter((push) => isDue(push, nowMs)).slice(0, room);
    const next = waiting[due.length];
    const isOpen = endpoint.openUntilMs !== null && nowMs < endpoint.openUntilMs;
    const nextAtMs = isOpen ? endpoint.openUntilMs : next?.nextAtMs;
    // What is due and finds no room waits for the end of one that is under way.
    const isTimed = next !== undefined && nextAtMs != null && nextAtMs > nowMs;
    const nextMs = isTimed ? nextAtMs - nowMs : Infinity;
    // Also when a secret has come to its end, so that it does not stay.
    const secretMs = (endpoint.oldSecretUntilMs ?? Infinity) - nowMs;
    return { due: due.map(({ messageId }) => messageId), waitMs: Math.min(nextMs, Math.max(secretMs, 0)) };
  }

  /** Looks at the mail once more, then calls the endpoint. What came of it is for the caller to put on record. */
  async attempt(
    { tenant, agentId }: EndpointKey,
    messageId: string,
    signal: AbortSignal,
  ): Promise<EndedAttempt | "dropped" | "idle"> {
    const endpoint = await this.#store.pushEndpoint(tenant, agentId);
    const push = await this.#store.push(tenant, messageId);
    if (signal.aborted || endpoint?.state !== "active" || push?.state !== "pending") return "idle";
    const delivery = await this.#store.delivery(tenant, messageId);
    const message = await this.#store.message(tenant, messageId);
    const atMs = this.#clock.nowMs();
    if (delivery === undefined || message === undefined || dropReason(delivery, atMs) !== undefined) {
      return this.#drop(push);
    }
    const announce = (): Promise<boolean> => this.#announce(push);
    const tried = isLost(push, delivery)
      ? NEVER_HEARD_OF
      : await this.#senders[endpoint.mode].attempt(
          endpoint,
          { delivery, message },
          { nowMs: atMs, announce, signal },
        );
    if (tried === undefined) return "idle";
    return { sent: endpoint, push, tried, atMs, endedAtMs: this.#clock.nowMs() };
  }

  /** May be asked again when it failed: what is on record already is not written twice. */
  async record({ sent, push: before, tried, atMs, endedAtMs }: EndedAttempt): Promise<PushOutcome["kind"]> {
    const { tenant, agentId, messageId } = before;
    const { outcome, status, error, answer: answered } = tried;
    const isSame = await decideAndCommit(this.#store, async () => {
      const push = await this.#store.push(tenant, messageId);
      const endpoint = await this.#store.pushEndpoint(tenant, agentId);
      const answer = endpoint !== undefined && isSameEndpoint(endpoint, sent);
      // Its mail may have been retired meanwhile, and all that was known of its push with it.
      if (push === undefined || push.attempts > before.attempts) return { changes: undefined, answer };
      const attempt = push.attempts + 1;
      const durationMs = endedAtMs - atMs;
      const made = { tenant, messageId, attempt, atMs, durationMs, status, error, answer: answered };
      const delivery = await this.#store.delivery(tenant, messageId);
      const parts = await this.#outcomeChanges({ push, delivery, endpoint }, sent, outcome, endedAtMs);
      const [after = push] = parts.flatMap(({ pushes = [] }) => pushes);
      const recorded = { tried, push: after, delivery, nowMs: endedAtMs };
      const more = (await this.#senders[sent.mode].changesAfter?.(recorded)) ?? {};
      return { changes: combine(tenant, [{ pushAttempts: [made] }, ...parts, more]), answer };
    });
    if (isSame && outcome.kind === "delivered") {
      await this.#store.touchAgent(tenant, agentId, this.#clock.nowMs());
    }
    return outcome.kind;
  }

  /** What waits for an endpoint that is called no more is dropped and says why. True while there may be more. */
  async dropLeft({ tenant, agentId }: EndpointKey): Promise<boolean> {
    return decideAndCommit(this.#store, async () => {
      const endpoint = await this.#store.pushEndpoint(tenant, agentId);
      if (endpoint === undefined || endpoint.state === "active") return { changes: undefined, answer: false };
      const left = await this.#store.duePushes(tenant, agentId, ANY_TIME, PUSHES_TOGETHER_MAX);
      if (left.length === 0) return { changes: undefined, answer: false };
      const pushes = left.map((push) => dropped(push, whyDropped(endpoint)));
      // Written as it is, for its version: an endpoint that is enabled meanwhile takes up what was dropped before.
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

  async #takenUp(mail: readonly MailboxMessage[]): Promise<readonly PushRecord[]> {
    const nowMs = this.#clock.nowMs();
    const pushes: PushRecord[] = [];
    for (const { delivery, message } of mail) {
      const firstAtMs = firstAttemptAtMs(message.acceptedAtMs, this.#settings.pushAttemptsMs);
      const known = await this.#store.push(delivery.tenant, delivery.messageId);
      const push = takenUp(known, delivery, { nowMs, firstAtMs });
      if (push !== undefined) pushes.push(push);
    }
    return pushes;
  }

  /** No request, no attempt: whoever took the mail has it. `idle` when it has come back meanwhile. */
  async #drop({ tenant, messageId }: PushRecord): Promise<"dropped" | "idle"> {
    return decideAndCommit(this.#store, async () => {
      const push = await this.#store.push(tenant, messageId);
      if (push?.state !== "pending") return { changes: undefined, answer: "idle" };
      const message = await this.#store.message(tenant, messageId);
      const delivery = message === undefined ? undefined : await this.#store.delivery(tenant, messageId);
      const reason = dropReason(delivery, this.#clock.nowMs());
      if (reason === undefined) return { changes: undefined, answer: "idle" };
      return { changes: { tenant, pushes: [dropped(push, reason)], events: [] }, answer: "dropped" };
    });
  }

  /** From here on nobody knows whether it has arrived, until its outcome is on record. */
  async #announce({ tenant, messageId }: PushRecord): Promise<boolean> {
    return decideAndCommit(this.#store, async () => {
      const push = await this.#store.push(tenant, messageId);
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

function isDue({ nextAtMs }: PushRecord, nowMs: number): boolean {
  return nextAtMs !== null && nextAtMs <= nowMs;
}

/** Pushes written in one commit: few enough that other callers do not wait long for theirs. */
export const PUSHES_TOGETHER_MAX = 100;

/** What waits in the mailbox behind a position, as much of it as is written in one commit. */
export function messagesAfter(
  store: MailboxStore,
  { tenant, agentId }: EndpointKey,
  afterPosition: number,
  nowMs: number,
): Promise<readonly MailboxMessage[]> {
  const page = { limit: PUSHES_TOGETHER_MAX, bytesMax: LIMITS.answerBytesMax };
  return store.availableMessages({ tenant, agentId, afterPosition, nowMs, ...page });
}
