import type { AgentId } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import { journalTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import { isGone, type WaitOptions } from "../mechanisms/wait-options.ts";
import type { MailboxService, PurposeQuery, PurposeLease } from "../mailboxes/mailbox-service.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";

/** After so many lost races against other takers the queue counts as empty. */
const MISSES_MAX = 20;

/** Takes one message of a mailbox, waiting up to `waitMs`. */
type TakeFrom = (agent: string, waitMs: number) => Promise<MailboxMessage | undefined>;

export interface QueueIntakeParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly waitQuota: WaitQuota;
  readonly mailboxes: MailboxService;
}

/** Takes work and results. An operator that names no agent takes the oldest of all agents. */
export class QueueIntake {
  readonly #parts: QueueIntakeParts;

  constructor(parts: QueueIntakeParts) {
    this.#parts = parts;
  }

  /** Leases the oldest message of this purpose. */
  async lease(
    principal: Principal,
    agent: string | undefined,
    wanted: PurposeLease,
    waiting: WaitOptions,
  ): Promise<MailboxMessage | undefined> {
    return this.#take(principal, agent, wanted, waiting, (mailbox, waitMs) =>
      this.#parts.mailboxes.take(principal, mailbox, { ...wanted, waitMs }, waiting),
    );
  }

  /** Acknowledges the oldest message before returning it, unless the caller has disconnected. */
  async drain(
    principal: Principal,
    agent: string | undefined,
    wanted: PurposeQuery,
    waiting: WaitOptions,
  ): Promise<MailboxMessage | undefined> {
    return this.#take(principal, agent, wanted, waiting, async (mailbox, waitMs) => {
      const { clock } = this.#parts;
      const endMs = clock.nowMs() + waitMs;
      for (;;) {
        const leftMs = Math.max(0, endMs - clock.nowMs());
        const oldest = await this.#parts.mailboxes.oldest(
          principal,
          mailbox,
          { ...wanted, waitMs: leftMs },
          waiting,
        );
        if (oldest === undefined || isGone(waiting)) return undefined;
        const message_ids = [oldest.delivery.messageId];
        const { acknowledged } = await this.#parts.mailboxes.ack(principal, mailbox, { message_ids });
        // Another caller may have acknowledged it first.
        if (acknowledged === 1) return oldest;
      }
    });
  }

  async #take(
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
    const { clock, guard, waitQuota } = this.#parts;
    const { signal } = waiting;
    using watch = waitQuota.watch(principal, journalTopic(tenant));
    const endMs = clock.nowMs() + wanted.waitMs;
    for (;;) {
      const taken = await this.#oldestOfAll(tenant, wanted, takeFrom);
      const leftMs = endMs - clock.nowMs();
      if (taken !== undefined || leftMs <= 0 || signal?.aborted === true) return taken;
      if (!(await watch.changed({ timeoutMs: leftMs, signal }))) return undefined;
      await guard.assertStillValid(principal);
    }
  }

  async #oldestOfAll(
    tenant: string,
    { purpose }: PurposeQuery,
    takeFrom: TakeFrom,
  ): Promise<MailboxMessage | undefined> {
    for (let misses = 0; misses < MISSES_MAX; misses += 1) {
      const nowMs = this.#parts.clock.nowMs();
      const mailbox: AgentId | undefined = await this.#parts.store.deliveries.oldestMailbox(
        tenant,
        purpose,
        nowMs,
      );
      if (mailbox === undefined) return undefined;
      const taken = await takeFrom(mailbox, 0);
      if (taken !== undefined) return taken;
    }
    return undefined;
  }
}
