import type { AgentId } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import { journalTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import { isGone, type WaitOptions } from "../mechanisms/wait-options.ts";
import type { MailboxService, PurposeQuery, PurposeLease } from "../mailboxes/mailbox-service.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";

/** How often another taker may be faster before it is taken for an empty queue. */
const MISSES_MAX = 20;

/** Takes one message of a mailbox, waiting for it as long as it is told. */
type TakeFrom = (agent: string, waitMs: number) => Promise<MailboxMessage | undefined>;

/** Takes work and results: an agent its own, an operator somebody's, or the oldest of all where it names nobody. */
export class QueueIntake {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #clock: Clock;
  readonly #waitQuota: WaitQuota;
  readonly #mailboxes: MailboxService;

  constructor(
    parts: Pick<ServiceParts, "store" | "clock" | "guard" | "waitQuota">,
    mailboxes: MailboxService,
  ) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#clock = parts.clock;
    this.#waitQuota = parts.waitQuota;
    this.#mailboxes = mailboxes;
  }

  /** Taken mail is the caller's until it is finished, or its lease ends. */
  async lease(
    principal: Principal,
    agent: string | undefined,
    wanted: PurposeLease,
    waiting: WaitOptions,
  ): Promise<MailboxMessage | undefined> {
    return this.#find(principal, agent, wanted, waiting, (mailbox, waitMs) =>
      this.#mailboxes.take(principal, mailbox, { ...wanted, waitMs }, waiting),
    );
  }

  /** Taken mail is done with: acknowledged before it is answered, and not at all if nobody is there to read it. */
  async drain(
    principal: Principal,
    agent: string | undefined,
    wanted: PurposeQuery,
    waiting: WaitOptions,
  ): Promise<MailboxMessage | undefined> {
    return this.#find(principal, agent, wanted, waiting, async (mailbox, waitMs) => {
      const endMs = this.#clock.nowMs() + waitMs;
      for (;;) {
        const leftMs = Math.max(0, endMs - this.#clock.nowMs());
        const mail = await this.#mailboxes.oldest(principal, mailbox, { ...wanted, waitMs: leftMs }, waiting);
        if (mail === undefined || isGone(waiting)) return undefined;
        const message_ids = [mail.delivery.messageId];
        const { acknowledged } = await this.#mailboxes.ack(principal, mailbox, { message_ids });
        // Of two that saw the same message, one has it.
        if (acknowledged === 1) return mail;
      }
    });
  }

  async #find(
    principal: Principal,
    agent: string | undefined,
    wanted: PurposeQuery,
    waiting: WaitOptions,
    takeFrom: TakeFrom,
  ): Promise<MailboxMessage | undefined> {
    const mailbox = agent ?? (principal.kind === "agent" ? principal.agentId : undefined);
    if (mailbox !== undefined) return takeFrom(mailbox, wanted.waitMs);
    const { tenant } = principal;
    if (wanted.waitMs === 0) return this.#oldestOfAll(tenant, wanted, takeFrom);
    const { signal } = waiting;
    using watch = this.#waitQuota.watch(principal, journalTopic(tenant));
    const endMs = this.#clock.nowMs() + wanted.waitMs;
    for (;;) {
      const mail = await this.#oldestOfAll(tenant, wanted, takeFrom);
      const leftMs = endMs - this.#clock.nowMs();
      if (mail !== undefined || leftMs <= 0 || signal?.aborted === true) return mail;
      if (!(await watch.changed({ timeoutMs: leftMs, signal }))) return undefined;
      await this.#guard.assertStillValid(principal);
    }
  }

  async #oldestOfAll(
    tenant: string,
    { purpose }: PurposeQuery,
    takeFrom: TakeFrom,
  ): Promise<MailboxMessage | undefined> {
    for (let misses = 0; misses < MISSES_MAX; misses += 1) {
      const nowMs = this.#clock.nowMs();
      const mailbox: AgentId | undefined = await this.#store.oldestMailbox(tenant, purpose, nowMs);
      if (mailbox === undefined) return undefined;
      const mail = await takeFrom(mailbox, 0);
      if (mail !== undefined) return mail;
    }
    return undefined;
  }
}
