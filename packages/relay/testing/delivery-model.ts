import type { DeliveryState, RelayErrorCode } from "@a2a-relay/protocol";

/** A delivery in the model: no store, no versions, only what the rules need. */
export interface ModelDelivery {
  readonly id: string;
  readonly agent: string;
  readonly sender: string;
  /** When it is given up, the sender of work gets a result; other senders get a notice. */
  readonly purpose: "mail" | "work" | "result";
  readonly quiet: boolean;
  readonly idempotent: boolean;
  readonly keyed: boolean;
  readonly expiresAtMs: number;
  state: DeliveryState;
  attempt: number;
  leaseId: string | undefined;
  leasedAtMs: number;
  leaseEndMs: number | undefined;
  delivered: boolean;
}

export type Outcome = "ok" | RelayErrorCode;

/** What one act is expected to do beside its own delivery. */
interface Effects {
  /** Deliveries that became available again, in any order. */
  readonly returned: Set<string>;
  /** Messages whose sender must be told once, by a message that names them. */
  readonly untold: Set<string>;
}

const ATTEMPTS_MAX = 3;

/** The rules of deliveries, written a second time and as simply as possible. */
export class DeliveryModel {
  readonly delivery = new Map<string, ModelDelivery>();
  /** Per agent, the ids of its deliveries in the order in which they became available. */
  readonly order = new Map<string, string[]>();
  nowMs: number;
  effects: Effects = { returned: new Set(), untold: new Set() };

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  beginAct(): void {
    this.effects = { returned: new Set(), untold: new Set() };
  }

  add(
    delivery: Omit<
      ModelDelivery,
      "state" | "attempt" | "leaseId" | "leasedAtMs" | "leaseEndMs" | "delivered"
    >,
  ): void {
    this.delivery.set(delivery.id, {
      ...delivery,
      state: "available",
      attempt: 0,
      leaseId: undefined,
      leasedAtMs: 0,
      leaseEndMs: undefined,
      delivered: false,
    });
    this.#toEnd(delivery.agent, delivery.id);
  }

  /** The message that tells a sender what became of its message. */
  tell(about: ModelDelivery, message: Pick<ModelDelivery, "id" | "sender" | "expiresAtMs">): void {
    const purpose = about.purpose === "work" ? "result" : "mail";
    this.add({ ...message, agent: about.sender, purpose, quiet: true, idempotent: true, keyed: false });
    this.effects.returned.add(message.id);
  }

  /** What a reader of the mailbox sees now, in order. */
  readable(agent: string): readonly ModelDelivery[] {
    return (this.order.get(agent) ?? [])
      .map((id) => this.get(id))
      .filter((delivery) => delivery.state === "available" && delivery.expiresAtMs > this.nowMs);
  }

  get(id: string): ModelDelivery {
    const delivery = this.delivery.get(id);
    if (delivery === undefined) throw new Error(`the model does not know ${id}`);
    return delivery;
  }

  read(agent: string, limit: number): readonly string[] {
    const shown = this.readable(agent).slice(0, limit);
    for (const delivery of shown) delivery.delivered = true;
    return shown.map(({ id }) => id);
  }

  /** The deliveries that a lease must hand out; the ids of the leases are told afterwards. */
  lease(agent: string, max: number): readonly ModelDelivery[] {
    return this.readable(agent).slice(0, max);
  }

  leased(delivery: ModelDelivery, leaseId: string, leaseMs: number | undefined): void {
    delivery.state = "leased";
    delivery.attempt += 1;
    delivery.leaseId = leaseId;
    delivery.leasedAtMs = this.nowMs;
    delivery.leaseEndMs = leaseMs === undefined ? undefined : this.nowMs + leaseMs;
  }

  acknowledge(delivery: ModelDelivery, leaseId: string | undefined): Outcome {
    const repeated =
      delivery.state === "acknowledged" && (leaseId === undefined || leaseId === delivery.leaseId);
    if (repeated) return "ok";
    const right = this.#mayFinish(delivery, leaseId);
    if (right === "ok") delivery.state = "acknowledged";
    return right;
  }

  fail(delivery: ModelDelivery, leaseId: string | undefined): Outcome {
    const right = this.#mayFinish(delivery, leaseId);
    if (right === "ok") this.#undelivered(delivery, "dead");
    return right;
  }

  release(delivery: ModelDelivery, leaseId: string): Outcome {
    const right = this.#mayFinish(delivery, leaseId);
    if (right !== "ok") return right;
    if (delivery.state !== "leased") return "wrong_state";
    this.#return(delivery);
    return "ok";
  }

  renew(delivery: ModelDelivery, leaseId: string, leaseMs: number): Outcome {
    const right = this.#mayFinish(delivery, leaseId);
    if (right !== "ok") return right;
    if (delivery.state !== "leased") return "lease_lost";
    delivery.leaseEndMs = this.nowMs + leaseMs;
    return "ok";
  }

  requeue(delivery: ModelDelivery, observed: string | undefined): Outcome {
    const right = this.#mayRepair(delivery, observed);
    if (right === "ok") this.#revoke(delivery);
    return right;
  }

  forceError(delivery: ModelDelivery, observed: string | undefined): Outcome {
    const right = this.#mayRepair(delivery, observed);
    if (right !== "ok") return right;
    this.#undelivered(delivery, "dead");
    delivery.leaseId = undefined;
    return right;
  }

  /** Answers what must have been requeued, oldest lease first. */
  retryStale(policy: {
    readonly minAgeMs: number;
    readonly attempts: number;
    readonly requeues: number;
  }): string[] {
    const leases = [...this.delivery.values()]
      .filter((delivery) => delivery.state === "leased")
      .toSorted((a, b) => a.leasedAtMs - b.leasedAtMs);
    const stale = leases.filter(
      (delivery) =>
        this.nowMs - delivery.leasedAtMs >= policy.minAgeMs &&
        delivery.keyed &&
        delivery.idempotent &&
        delivery.attempt < policy.attempts,
    );
    const chosen = stale.slice(0, policy.requeues);
    for (const delivery of chosen) this.#revoke(delivery);
    return chosen.map(({ id }) => id);
  }

  /** What the clock does by itself. */
  sweep(): void {
    for (const delivery of this.delivery.values()) {
      const over =
        delivery.state === "leased" && delivery.leaseEndMs !== undefined && delivery.leaseEndMs <= this.nowMs;
      if (!over || !delivery.idempotent) continue;
      // However often it is taken, a result is kept until it expires.
      if (delivery.purpose === "result" || delivery.attempt < ATTEMPTS_MAX) this.#return(delivery);
      else this.#undelivered(delivery, "dead");
    }
    for (const delivery of this.delivery.values()) {
      if (delivery.state === "available" && delivery.expiresAtMs <= this.nowMs)
        this.#undelivered(delivery, "expired");
    }
  }

  /** Takes over the order of what this act put at the end, which the rules leave open. */
  settleOrder(agent: string, seen: readonly string[]): void {
    const moved = seen.filter((id) => this.effects.returned.has(id));
    const rest = (this.order.get(agent) ?? []).filter((id) => !moved.includes(id));
    this.order.set(agent, [...rest, ...moved]);
  }

  /** Finished only under the current lease; the last holder may finish what no other worker took over. */
  #mayFinish(delivery: ModelDelivery, leaseId: string | undefined): Outcome {
    const foreign = leaseId !== undefined && leaseId !== delivery.leaseId;
    if (foreign) return "lease_lost";
    if (delivery.state !== "available" && delivery.state !== "leased") return "wrong_state";
    return delivery.state === "leased" && leaseId === undefined ? "lease_required" : "ok";
  }

  #mayRepair(delivery: ModelDelivery, observed: string | undefined): Outcome {
    if (delivery.state !== "leased") return "wrong_state";
    return observed === undefined || observed === delivery.leaseId ? "ok" : "lease_lost";
  }

  /** Unlike a lease that ran out, a lease that an operator ended may not finish. */
  #revoke(delivery: ModelDelivery): void {
    this.#return(delivery);
    delivery.leaseId = undefined;
  }

  #return(delivery: ModelDelivery): void {
    delivery.state = "available";
    delivery.delivered = false;
    delivery.leaseEndMs = undefined;
    this.effects.returned.add(delivery.id);
    this.#toEnd(delivery.agent, delivery.id);
  }

  #undelivered(delivery: ModelDelivery, state: "dead" | "expired"): void {
    delivery.state = state;
    this.effects.returned.delete(delivery.id);
    if (!delivery.quiet) this.effects.untold.add(delivery.id);
  }

  #toEnd(agent: string, id: string): void {
    this.order.set(agent, [...(this.order.get(agent) ?? []).filter((other) => other !== id), id]);
  }
}
