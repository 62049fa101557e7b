import {
  type AgentId,
  LIMITS,
  type MailboxItem,
  type MailboxNotice,
  type MailboxStreamQuery,
  RelayError,
  type RelayErrorCode,
} from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import { mailboxTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { parseCursor } from "../mechanisms/cursor.ts";
import { follow, type PollResult } from "../mechanisms/follow.ts";
import type { Throttle } from "../mechanisms/throttle.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import { markDelivered, unreadIn } from "./delivered-mark.ts";
import { viewMailboxItem, viewNotice } from "./delivery-view.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";

/**
 * MailboxMessage is marked as delivered so much after it was shown, or a little later: all readers do it at the same moments, so
 * that their marks share a commit. Whoever acknowledges it sooner saves the mark, and the two do not get in each
 * other's way.
 */
const MARK_DELAY_MS = 100;
/** And before there is more of it than this. */
const UNMARKED_MAX = 1_000;
/** What keeps a mark from being written now, and not later. */
const PASSING: ReadonlySet<RelayErrorCode> = new Set<RelayErrorCode>([
  "resource_exhausted",
  "storage_full",
  "unavailable",
]);

/** One step of a mailbox that is followed. */
export interface MailboxPage {
  /** Oldest first. None: nothing came for a while. */
  readonly mail: readonly StreamedItem[];
  /** Behind all of it. */
  readonly cursor: string;
}

export interface StreamedItem {
  readonly cursor: string;
  /** A notice where only notices were asked for. */
  readonly item: MailboxItem | MailboxNotice;
}

interface MailboxStreamParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly throttle: Throttle;
  readonly waitQuota: WaitQuota;
}

/** A mailbox page by page, as mail comes in. The caller has seen to it that the mailbox may be read. */
export function followMailbox(
  parts: MailboxStreamParts,
  settings: { readonly heartbeatMs: number },
  reader: { readonly principal: Principal; readonly agentId: AgentId; readonly query: MailboxStreamQuery },
  { signal }: WaitOptions,
): AsyncIterable<MailboxPage> {
  const { principal, agentId, query } = reader;
  const pages = new MailboxPages(parts, principal.tenant, agentId, query);
  return follow({
    watch: parts.waitQuota.watch(principal, mailboxTopic(principal.tenant, agentId)),
    clock: parts.clock,
    throttle: parts.throttle,
    heartbeatMs: settings.heartbeatMs,
    signal,
    poll: () => pages.next(),
    end: () => pages.end(),
    assertAllowed: () => parts.guard.assertStillValid(principal),
  });
}

/** Where one reader is in a mailbox, and what it was shown and is not marked yet. */
class MailboxPages {
  readonly #parts: MailboxStreamParts;
  readonly #tenant: string;
  readonly #agentId: AgentId;
  readonly #leavesMarks: boolean;
  readonly #show: (mail: MailboxMessage) => MailboxItem | MailboxNotice;
  #position: number;
  /** Of the page before, which is taken once the next one is asked for. */
  #unread: readonly string[] = [];
  #unmarked: string[] = [];
  #markDueAtMs = 0;
  /** There was nothing at the look before. */
  #isQuiet = true;
  /** Resolves to why it can never succeed, so that nobody has to wait for it to hear of it. */
  #marking: Promise<unknown> | undefined;

  constructor(parts: MailboxStreamParts, tenant: string, agentId: AgentId, query: MailboxStreamQuery) {
    const notice = query.notice === true;
    this.#parts = parts;
    this.#tenant = tenant;
    this.#agentId = agentId;
    this.#leavesMarks = query.peek !== true && !notice;
    this.#show = notice ? viewNotice : viewMailboxItem;
    this.#position = parseCursor(query.since, "since");
  }

  async next(): Promise<PollResult<MailboxPage>> {
    const { clock, store } = this.#parts;
    const nowMs = clock.nowMs();
    this.#take(nowMs);
    const mail = await store.availableMessages({
      tenant: this.#tenant,
      agentId: this.#agentId,
      afterPosition: this.#position,
      limit: LIMITS.streamPageMessagesMax,
      bytesMax: LIMITS.streamPageBytesMax,
      nowMs,
    });
    const isEmpty = mail.length === 0;
    this.#position = mail.at(-1)?.delivery.position ?? this.#position;
    if (this.#leavesMarks) {
      this.#unread = unreadIn(mail);
      if (this.#isMarkDue(nowMs, isEmpty)) await this.#mark();
    }
    this.#isQuiet = isEmpty;
    const shown = mail.map((each) => ({ cursor: String(each.delivery.position), item: this.#show(each) }));
    return {
      page: { mail: shown, cursor: String(this.#position) },
      isEmpty,
      hasMore: mail.length === LIMITS.streamPageMessagesMax || bytesOf(mail) > LIMITS.streamPageBytesMax / 2,
      againMs: this.#unmarked.length === 0 ? undefined : Math.max(1, this.#markDueAtMs - nowMs),
    };
  }

  /** What was shown and is not marked yet. If it cannot be any more, it is as if it had not been seen. */
  async end(): Promise<void> {
    await this.#marking;
    if (this.#unmarked.length > 0) await this.#mark().catch(() => undefined);
    await this.#marking;
  }

  #take(nowMs: number): void {
    if (this.#unread.length === 0) return;
    if (this.#unmarked.length === 0) this.#markDueAtMs = markDueAfter(nowMs);
    this.#unmarked.push(...this.#unread);
    this.#unread = [];
  }

  #isMarkDue(nowMs: number, isEmpty: boolean): boolean {
    // Also of use without mail: it tells that the agent is there.
    if (isEmpty && this.#isQuiet) return true;
    const isLate = this.#unmarked.length > 0 && nowMs >= this.#markDueAtMs;
    return isLate || this.#unmarked.length >= UNMARKED_MAX;
  }

  /** Under way while the next page is, which it must not hold up. */
  async #mark(): Promise<void> {
    const failure = await this.#marking;
    if (failure !== undefined) throw RelayError.from(failure);
    const unmarked = this.#unmarked;
    this.#unmarked = [];
    this.#marking = markDelivered(this.#parts, this.#tenant, this.#agentId, unmarked).catch(
      (reason: unknown) => {
        if (!PASSING.has(RelayError.from(reason).code)) return reason;
        // It comes with a later look: a reader must not lose its mail because its mark could not be written.
        this.#unmarked = [...unmarked, ...this.#unmarked].slice(-UNMARKED_MAX);
        return undefined;
      },
    );
  }
}

function markDueAfter(shownAtMs: number): number {
  return (Math.ceil(shownAtMs / MARK_DELAY_MS) + 1) * MARK_DELAY_MS;
}

/** Nearly: a character is one at least, and whether a page is nearly full needs no more than that. */
function bytesOf(mail: readonly MailboxMessage[]): number {
  return mail.reduce((sum, { message }) => sum + message.json.length, 0);
}
