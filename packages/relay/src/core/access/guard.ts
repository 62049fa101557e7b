import { RelayError } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { type EventDraft, NO_SUBJECT } from "../ports/journal.ts";
import { denialOf, isAllowed, type Target } from "./authorize.ts";
import type { Verb } from "../ports/access.ts";
import { hasExpired } from "./expiry.ts";
import { actorName, type AgentPrincipal, type Principal } from "./principal.ts";

/** Asks who may do what, and puts every refusal on record before the caller hears of it. */
export class Guard {
  readonly #store: RelayStore;
  readonly #clock: Clock;

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /**
   * Nothing to wait for when it is allowed, as it nearly always is. `unseen` is what the caller hears of what it may
   * not know of, in the words for what is not there.
   */
  authorize(
    principal: Principal,
    verb: Verb,
    target: Target = {},
    unseen?: string,
  ): Promise<void> | undefined {
    if (!isAllowed(principal, verb, target)) {
      return this.refuse(principal, verb, target, denialOf(principal, verb, target, unseen));
    }
    if (target.atMs === undefined || principal.kind === "operator") return undefined;
    return this.#assertNotOthers(principal, verb, target, unseen);
  }

  async #assertNotOthers(
    principal: AgentPrincipal,
    verb: Verb,
    target: Target,
    unseen: string | undefined,
  ): Promise<void> {
    const { tenant, agentId } = principal;
    if ((target.atMs ?? 0) >= (await this.#store.othersBeforeMs(tenant, agentId))) return;
    await this.refuse(principal, verb, target, denialOf(principal, verb, target, unseen));
  }

  /** For whoever has waited: its key may have ended meanwhile, and what came since is not for it. */
  assertStillValid({ keyId }: Principal): Promise<void> | undefined {
    return keyId === undefined ? undefined : this.#assertWorks(keyId);
  }

  /** For what a rule beyond the table forbids; `error` says it in that rule's words, `more` goes on record. */
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

  async #assertWorks(keyId: string): Promise<void> {
    const key = await this.#store.key(keyId);
    if (key?.revokedAtMs === null && !hasExpired(key.expiresAtMs, this.#clock.nowMs())) return;
    throw new RelayError("unauthenticated", "this key ended while its holder waited; ask for a new one");
  }

  /** Whoever cannot be put on record is refused for that reason alone. */
  async record(tenant: string, event: EventDraft): Promise<void> {
    try {
      await this.#store.commit({ tenant, events: [event] });
    } catch (cause) {
      throw new RelayError("unavailable", "audit write failed; refusing to proceed", { cause });
    }
  }
}
