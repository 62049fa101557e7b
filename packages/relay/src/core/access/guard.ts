import { RelayError, type Verb } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import { type EventDraft, NO_SUBJECT } from "../ports/journal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { denialOf, isAllowed, type Target } from "./authorize.ts";
import { hasExpired } from "./expiry.ts";
import { actorName, type Principal } from "./principal.ts";
import { ownedSinceMs } from "../rules/agent-owner.ts";

/** Checks who may do what, and records every refusal before the caller hears of it. */
export class Guard {
  readonly #store: RelayStore;
  readonly #clock: Clock;

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /** `unseen` is the error text for targets that the caller must not know of: the same as for missing ones. */
  async authorize(principal: Principal, verb: Verb, target: Target = {}, unseen?: string): Promise<void> {
    const isPermitted = isAllowed(principal, verb, target) && (await this.#isOfSameHolder(principal, target));
    if (!isPermitted) await this.refuse(principal, verb, target, denialOf(principal, verb, target, unseen));
  }

  /** Run after a wait: the key may have ended meanwhile, and its holder must not see what came since. */
  async assertStillValid({ keyId }: Principal): Promise<void> {
    if (keyId === undefined) return;
    const key = await this.#store.keys.get(keyId);
    if (key?.revokedAtMs === null && !hasExpired(key.expiresAtMs, this.#clock.nowMs())) return;
    throw new RelayError("unauthenticated", "this key ended while its holder waited; ask for a new one");
  }

  /** Also for rules beyond the table: `error` is what the caller gets, `more` goes into the event. */
  async refuse(
    principal: Principal,
    verb: Verb,
    target: Target,
    error: RelayError = denialOf(principal, verb, target),
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<never> {
    await this.record(principal.tenant, {
      type: "access.denied",
      atMs: this.#clock.nowMs(),
      actor: actorName(principal),
      ...NO_SUBJECT,
      agentId: target.agentId ?? null,
      data: {
        verb,
        ...more,
        ...(principal.keyId === undefined ? {} : { key_id: principal.keyId }),
        ...(target.tenant === undefined ? {} : { tenant: target.tenant }),
      },
    });
    throw error;
  }

  /** Fails with `unavailable` when the event cannot be written: the relay lets nothing happen unrecorded. */
  async record(tenant: string, event: EventDraft): Promise<void> {
    try {
      await this.#store.commit({ tenant, events: [event] });
    } catch (cause) {
      throw new RelayError("unavailable", "audit write failed; refusing to proceed", { cause });
    }
  }

  /** False when the target belonged to an earlier agent with the caller's id. */
  async #isOfSameHolder(principal: Principal, { atMs }: Target): Promise<boolean> {
    if (atMs === undefined || principal.kind === "operator") return true;
    return atMs >= (await ownedSinceMs(this.#store, principal.tenant, principal.agentId));
  }
}
