import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { deliveryEvent, freeReservations } from "../rules/task-changes.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";

/** What becomes of a delivery: undefined when nothing has to change. It throws when that may not be. */
export type DeliveryRule = (delivery: DeliveryRecord, nowMs: number) => DeliveryRecord | undefined;

export interface DeliveryWish {
  readonly messageId: string;
  readonly rule: DeliveryRule;
}

/** The delivery as it is now, undefined when nothing had to change, or why it could not be. */
export type DeliveryOutcome = DeliveryRecord | undefined | RelayError;

/** Deliveries changed in one commit: many, yet few enough that other callers do not wait long for theirs. */
const TOGETHER_MAX = 100;

/** One rule on one delivery, or on many, each with its event. */
export class DeliveryChanges {
  readonly #store: RelayStore;
  readonly #clock: Clock;

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /** The agent's own, or `not_found`. */
  async deliveryIn(tenant: string, agentId: AgentId, messageId: string): Promise<DeliveryRecord> {
    const delivery = await this.#store.delivery(tenant, messageId);
    if (delivery?.agentId === agentId) return delivery;
    throw new RelayError("not_found", `${agentId} has no message ${messageId}`);
  }

  /** Undefined when nothing had to change. */
  async change(tenant: string, agentId: AgentId, wish: DeliveryWish): Promise<DeliveryRecord | undefined> {
    return decideAndCommit(this.#store, () => this.#decide(tenant, agentId, wish));
  }

  /** Each for itself, as far as they can tell; many in one commit cost far less. */
  async changeAll(
    tenant: string,
    agentId: AgentId,
    wishes: readonly DeliveryWish[],
  ): Promise<readonly DeliveryOutcome[]> {
    const [only] = wishes;
    if (only !== undefined && wishes.length === 1) return [await this.#changeAlone(tenant, agentId, only)];
    const groups: Promise<readonly DeliveryOutcome[]>[] = [];
    for (let start = 0; start < wishes.length; start += TOGETHER_MAX) {
      groups.push(this.#changeTogether(tenant, agentId, wishes.slice(start, start + TOGETHER_MAX)));
    }
    return (await Promise.all(groups)).flat();
  }

  async #changeTogether(
    tenant: string,
    agentId: AgentId,
    wishes: readonly DeliveryWish[],
  ): Promise<readonly DeliveryOutcome[]> {
    const decided = await Promise.all(
      wishes.map((wish) =>
        this.#decide(tenant, agentId, wish).catch((reason: unknown) => RelayError.from(reason)),
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
    // Somebody else changed one of them first, or it is there twice.
    return Promise.all(wishes.map((wish) => this.#changeAlone(tenant, agentId, wish)));
  }

  async #changeAlone(tenant: string, agentId: AgentId, wish: DeliveryWish): Promise<DeliveryOutcome> {
    try {
      return await this.change(tenant, agentId, wish);
    } catch (reason) {
      return RelayError.from(reason);
    }
  }

  async #decide(
    tenant: string,
    agentId: AgentId,
    { messageId, rule }: DeliveryWish,
  ): Promise<Decision<DeliveryRecord | undefined>> {
    const nowMs = this.#clock.nowMs();
    const changed = rule(await this.deliveryIn(tenant, agentId, messageId), nowMs);
    if (changed === undefined) return { changes: undefined, answer: undefined };
    const type = changed.state === "available" ? "message.released" : "message.acknowledged";
    const act: Partial<Changes> = {
      deliveries: [changed],
      events: [deliveryEvent(type, changed, agentId, nowMs, {})],
    };
    const freed = await freeReservations(this.#store, changed);
    return { changes: combine(tenant, [act, freed]), answer: changed };
  }
}
