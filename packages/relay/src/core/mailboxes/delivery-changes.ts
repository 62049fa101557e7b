import { type AgentId, type ItemResult, RelayError, toErrorBody } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { deliveryEvent, freeReservations } from "../rules/task-changes.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";

/** The delivery after an act; undefined when nothing changes. Throws when the act is refused. */
export type DeliveryRule = (delivery: DeliveryRecord, nowMs: number) => DeliveryRecord | undefined;

export interface RequestedChange {
  readonly messageId: string;
  readonly rule: DeliveryRule;
}

/** The changed delivery, undefined when nothing had to change, or why the act was refused. */
export type DeliveryOutcome = DeliveryRecord | undefined | RelayError;

/** Deliveries in one commit: few enough that other callers do not wait long for theirs. */
const COMMIT_DELIVERIES_MAX = 100;

/** Applies a rule to deliveries of one mailbox and commits each with its event. */
export class DeliveryChanges {
  readonly #store: RelayStore;
  readonly #clock: Clock;

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /** The agent's own, or `not_found`. */
  async deliveryIn(tenant: string, agentId: AgentId, messageId: string): Promise<DeliveryRecord> {
    const [delivery] = await this.#store.deliveries.get(tenant, [messageId]);
    return ownDelivery(agentId, messageId, delivery);
  }

  /** Undefined when nothing had to change. */
  async change(tenant: string, agentId: AgentId, act: RequestedChange): Promise<DeliveryRecord | undefined> {
    return decideAndCommit(this.#store, async () => {
      const [delivery] = await this.#store.deliveries.get(tenant, [act.messageId]);
      return this.#decide(agentId, act, delivery);
    });
  }

  /** Each act has its own outcome; one commit for many costs far less. */
  async changeAll(
    tenant: string,
    agentId: AgentId,
    acts: readonly RequestedChange[],
  ): Promise<readonly DeliveryOutcome[]> {
    const [only] = acts;
    if (only !== undefined && acts.length === 1) return [await this.#changeAlone(tenant, agentId, only)];
    const groups: Promise<readonly DeliveryOutcome[]>[] = [];
    for (let start = 0; start < acts.length; start += COMMIT_DELIVERIES_MAX) {
      groups.push(this.#changeTogether(tenant, agentId, acts.slice(start, start + COMMIT_DELIVERIES_MAX)));
    }
    return (await Promise.all(groups)).flat();
  }

  async #changeTogether(
    tenant: string,
    agentId: AgentId,
    acts: readonly RequestedChange[],
  ): Promise<readonly DeliveryOutcome[]> {
    const ids = acts.map(({ messageId }) => messageId);
    const deliveries = await this.#store.deliveries.get(tenant, ids);
    const decided = await Promise.all(
      acts.map((act, index) =>
        this.#decide(agentId, act, deliveries[index]).catch((reason: unknown) => RelayError.from(reason)),
      ),
    );
    const changes = decided.flatMap((each) =>
      each instanceof RelayError || each.changes === undefined ? [] : [each.changes],
    );
    const outcomes = decided.map((each) => (each instanceof RelayError ? each : each.answer));
    try {
      if (changes.length === 0) return outcomes;
      if ((await this.#store.commit(combine(tenant, changes))).committed) return outcomes;
    } catch (reason) {
      const error = RelayError.from(reason);
      return decided.map((each) => {
        if (each instanceof RelayError) return each;
        return each.changes === undefined ? each.answer : error;
      });
    }
    // Another caller changed one of them first, or the list names one twice.
    return Promise.all(acts.map((act) => this.#changeAlone(tenant, agentId, act)));
  }

  async #changeAlone(tenant: string, agentId: AgentId, act: RequestedChange): Promise<DeliveryOutcome> {
    try {
      return await this.change(tenant, agentId, act);
    } catch (reason) {
      return RelayError.from(reason);
    }
  }

  async #decide(
    agentId: AgentId,
    { messageId, rule }: RequestedChange,
    found: DeliveryRecord | undefined,
  ): Promise<Decision<DeliveryRecord | undefined>> {
    const nowMs = this.#clock.nowMs();
    const delivery = ownDelivery(agentId, messageId, found);
    const changed = rule(delivery, nowMs);
    if (changed === undefined) return { changes: undefined, answer: undefined };
    const type = changed.state === "available" ? "message.released" : "message.acknowledged";
    const change: Partial<Changes> = {
      deliveries: [changed],
      events: [deliveryEvent(type, changed, agentId, nowMs, {})],
    };
    const freed = await freeReservations(this.#store, changed);
    return { changes: combine(delivery.tenant, [change, freed]), answer: changed };
  }
}

function ownDelivery(
  agentId: AgentId,
  messageId: string,
  delivery: DeliveryRecord | undefined,
): DeliveryRecord {
  if (delivery?.agentId === agentId) return delivery;
  throw new RelayError("not_found", `${agentId} has no message ${messageId}`);
}

/** Deliveries of messages that were never read before. */
export function unreadIn(messages: readonly MailboxMessage[]): readonly DeliveryRecord[] {
  return messages.map(({ delivery }) => delivery).filter(({ deliveredAtMs }) => deliveredAtMs === null);
}

/** Renews the agent's presence and marks messages that it read for the first time. */
export async function markDelivered(
  { store, clock }: { readonly store: RelayStore; readonly clock: Clock },
  tenant: string,
  agentId: AgentId,
  unread: readonly DeliveryRecord[],
): Promise<void> {
  const nowMs = clock.nowMs();
  await store.agents.touch(tenant, agentId, nowMs);
  if (unread.length === 0) return;
  try {
    const marks = unread.map((delivery) => ({
      messageId: delivery.messageId,
      event: deliveryEvent("message.delivered", delivery, agentId, nowMs, {}),
    }));
    await store.deliveries.markDelivered({ tenant, deliveredAtMs: nowMs, marks });
  } catch (reason) {
    // A full disk does not prevent reading: a later read writes the mark.
    if (RelayError.from(reason).code !== "storage_full") throw reason;
  }
}

/** One result per change, in order. */
export function resultsOf(
  acts: readonly RequestedChange[],
  outcomes: readonly DeliveryOutcome[],
): readonly ItemResult[] {
  return acts.map(({ messageId: message_id }, index) => {
    const outcome = outcomes[index];
    return outcome instanceof RelayError ? failedItem(message_id, outcome) : { message_id, ok: true };
  });
}

export function failedItem(message_id: string, error: RelayError): ItemResult {
  return { message_id, ok: false, ...toErrorBody(error) };
}
