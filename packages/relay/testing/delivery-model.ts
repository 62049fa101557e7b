import type { DeliveryState, RelayErrorCode } from "@a2a-relay/protocol";

/** MailboxMessage as the model knows it: no store, no versions, only what the rules speak of. */
export interface ModelDelivery {
  readonly id: string;
  readonly agent: string;
  readonly sender: string;
  /** Work, when it is given up, is told of by its result; other mail by a notice, which is mail again. */
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

/** What one act is expected to do beyond its own mail. */
interface Effects {
  /** MailboxMessage that went back into its mailbox, in any order. */
  readonly returned: Set<string>;
  /** MailboxMessage whose sender must be told, once, by a message that names it. */
  readonly untold: Set<string>;
}

const ATTEMPTS_MAX = 3;

/** The rules of mail, said a second time and as simply as possible. */
export class DeliveryModel {
  readonly mail = new Map<string, ModelDelivery>();
  /** Per agent, the ids of its mail in the order in which they became available. */
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
    mail: Omit<ModelDelivery, "state" | "attempt" | "leaseId" | "leasedAtMs" | "leaseEndMs" | "delivered">,
  ): void {
    this.mail.set(mail.id, {
      ...mail,
      state: "available",
      attempt: 0,
      leaseId: undefined,
      leasedAtMs: 0,
      leaseEndMs: undefined,
      delivered: false,
    });
    this.#toEnd(mail.agent, mail.id);
  }

  /** The message that tells a sender what became of their mail. */
  tell(about: ModelDelivery, message: Pick<ModelDelivery, "id" | "sender" | "expiresAtMs">): void {
    const purpose = about.purpose === "work" ? "result" : "mail";
    this.add({ ...message, agent: about.sender, purpose, quiet: true, idempotent: true, keyed: false });
    this.effects.returned.add(message.id);
  }

  /** What a reader of the mailbox sees now, in order. */
  readable(agent: string): readonly ModelDelivery[] {
    return (this.order.get(agent) ?? [])
      .map((id) => this.get(id))
      .filter((mail) => mail.state === "available" && mail.expiresAtMs > this.nowMs);
  }

  get(id: string): ModelDelivery {
    const mail = this.mail.get(id);
    if (mail === undefined) throw new Error(`the model does not know ${id}`);
    return mail;
  }

  read(agent: string, limit: number): readonly string[] {
    const shown = this.readable(agent).slice(0, limit);
    for (const mail of shown) mail.delivered = true;
    return shown.map(({ id }) => id);
  }

  /** The mail that a lease must hand out; the ids of the leases are told afterwards. */
  lease(agent: string, max: number): readonly ModelDelivery[] {
    return this.readable(agent).slice(0, max);
  }

  leased(mail: ModelDelivery, leaseId: string, leaseMs: number | undefined): void {
    mail.state = "leased";
    mail.attempt += 1;
    mail.leaseId = leaseId;
    mail.leasedAtMs = this.nowMs;
    mail.leaseEndMs = leaseMs === undefined ? undefined : this.nowMs + leaseMs;
  }

  acknowledge(mail: ModelDelivery, leaseId: string | undefined): Outcome {
    const repeated = mail.state === "acknowledged" && (leaseId === undefined || leaseId === mail.leaseId);
    if (repeated) return "ok";
    const right = this.#mayFinish(mail, leaseId);
    if (right === "ok") mail.state = "acknowledged";
    return right;
  }

  fail(mail: ModelDelivery, leaseId: string | undefined): Outcome {
    const right = this.#mayFinish(mail, leaseId);
    if (right === "ok") this.#undelivered(mail, "dead");
    return right;
  }

  release(mail: ModelDelivery, leaseId: string): Outcome {
    const right = this.#mayFinish(mail, leaseId);
    if (right !== "ok") return right;
    if (mail.state !== "leased") return "wrong_state";
    this.#return(mail);
    return "ok";
  }

  renew(mail: ModelDelivery, leaseId: string, leaseMs: number): Outcome {
    const right = this.#mayFinish(mail, leaseId);
    if (right !== "ok") return right;
    if (mail.state !== "leased") return "lease_lost";
    mail.leaseEndMs = this.nowMs + leaseMs;
    return "ok";
  }

  requeue(mail: ModelDelivery, observed: string | undefined): Outcome {
    const right = this.#mayRepair(mail, observed);
    if (right === "ok") this.#revoke(mail);
    return right;
  }

  forceError(mail: ModelDelivery, observed: string | undefined): Outcome {
    const right = this.#mayRepair(mail, observed);
    if (right !== "ok") return right;
    this.#undelivered(mail, "dead");
    mail.leaseId = undefined;
    return right;
  }

  /** Answers what must have been requeued, oldest lease first. */
  retryStale(policy: {
    readonly minAgeMs: number;
    readonly attempts: number;
    readonly requeues: number;
  }): string[] {
    const leases = [...this.mail.values()]
      .filter((mail) => mail.state === "leased")
      .toSorted((a, b) => a.leasedAtMs - b.leasedAtMs);
    const stale = leases.filter(
      (mail) =>
        this.nowMs - mail.leasedAtMs >= policy.minAgeMs &&
        mail.keyed &&
        mail.idempotent &&
        mail.attempt < policy.attempts,
    );
    const chosen = stale.slice(0, policy.requeues);
    for (const mail of chosen) this.#revoke(mail);
    return chosen.map(({ id }) => id);
  }

  /** What the clock does by itself. */
  sweep(): void {
    for (const mail of this.mail.values()) {
      const over = mail.state === "leased" && mail.leaseEndMs !== undefined && mail.leaseEndMs <= this.nowMs;
      if (!over || !mail.idempotent) continue;
      // However often it is taken, a result is kept until it expires.
      if (mail.purpose === "result" || mail.attempt < ATTEMPTS_MAX) this.#return(mail);
      else this.#undelivered(mail, "dead");
    }
    for (const mail of this.mail.values()) {
      if (mail.state === "available" && mail.expiresAtMs <= this.nowMs) this.#undelivered(mail, "expired");
    }
  }

  /** Takes over the order of what this act put at the end, which the rules leave open. */
  settleOrder(agent: string, seen: readonly string[]): void {
    const moved = seen.filter((id) => this.effects.returned.has(id));
    const rest = (this.order.get(agent) ?? []).filter((id) => !moved.includes(id));
    this.order.set(agent, [...rest, ...moved]);
  }

  /** Finished only under the current lease; the last holder may finish what nobody took over. */
  #mayFinish(mail: ModelDelivery, leaseId: string | undefined): Outcome {
    const foreign = leaseId !== undefined && leaseId !== mail.leaseId;
    if (foreign) return "lease_lost";
    if (mail.state !== "available" && mail.state !== "leased") return "wrong_state";
    return mail.state === "leased" && leaseId === undefined ? "lease_required" : "ok";
  }

  #mayRepair(mail: ModelDelivery, observed: string | undefined): Outcome {
    if (mail.state !== "leased") return "wrong_state";
    return observed === undefined || observed === mail.leaseId ? "ok" : "lease_lost";
  }

  /** Unlike a lease that ran out, a lease that an operator ended may not finish. */
  #revoke(mail: ModelDelivery): void {
    this.#return(mail);
    mail.leaseId = undefined;
  }

  #return(mail: ModelDelivery): void {
    mail.state = "available";
    mail.delivered = false;
    mail.leaseEndMs = undefined;
    this.effects.returned.add(mail.id);
    this.#toEnd(mail.agent, mail.id);
  }

  #undelivered(mail: ModelDelivery, state: "dead" | "expired"): void {
    mail.state = state;
    this.effects.returned.delete(mail.id);
    if (!mail.quiet) this.effects.untold.add(mail.id);
  }

  #toEnd(agent: string, id: string): void {
    this.order.set(agent, [...(this.order.get(agent) ?? []).filter((other) => other !== id), id]);
  }
}
