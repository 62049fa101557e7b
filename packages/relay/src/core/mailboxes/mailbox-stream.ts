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
import { markDelivered, unreadIn } from "./delivery-changes.ts";
import { viewMailboxItem, viewNotice } from "./delivery-view.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";

/**
 * A message is marked as delivered this long after it was shown, at the next common tick: all readers write their marks
 * at the same ticks and share a commit. A message that is acknowledged sooner needs no mark.
 */
const MARK_DELAY_MS = 100;
/** Marks that wait at most; more are written at once. */
const UNMARKED_MAX = 1_000;
/** Errors after which a mark is tried again. */
const TRANSIENT: ReadonlySet<RelayErrorCode> = new Set<RelayErrorCode>([
  "resource_exhausted",
  "storage_full",
  "unavailable",
]);

/** One page of a followed mailbox. */
export interface MailboxPage {
  /** Oldest first. Empty: a heartbeat. */
  readonly items: readonly StreamedItem[];
  /** The position after the last item. */
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

/** A mailbox page by page, as messages arrive. The caller has authorised the reader. */
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

/** The position of one reader, and the messages it was shown that are not marked yet. */
class MailboxPages {
  readonly #parts: MailboxStreamParts;
  readonly #tenant: string;
  readonly #agentId: AgentId;
  readonly #leavesMarks: boolean;
  readonly #view: (message: MailboxMessage) => MailboxItem | MailboxNotice;
  #position: number;
  /** Of the last page, which counts as taken once the next one is asked for. */
  #unread: readonly DeliveryRecord[] = [];
  #unmarked: DeliveryRecord[] = [];
  #markDueAtMs = 0;
  /** The poll before found nothing. */
  #isQuiet = true;
  /** The mark under way. Resolves to the error where a retry is useless. */
  #marking: Promise<unknown> | undefined;

  constructor(parts: MailboxStreamParts, tenant: string, agentId: AgentId, query: MailboxStreamQuery) {
    const notice = query.notice === true;
    this.#parts = parts;
    this.#tenant = tenant;
    this.#agentId = agentId;
    this.#leavesMarks = query.peek !== true && !notice;
    this.#view = notice ? viewNotice : viewMailboxItem;
    this.#position = parseCursor(query.since, "since");
  }

  async next(): Promise<PollResult<MailboxPage>> {
    const { clock, store } = this.#parts;
    const nowMs = clock.nowMs();
    this.#take(nowMs);
    const messages = await store.deliveries.available({
      tenant: this.#tenant,
      agentId: this.#agentId,
      afterPosition: this.#position,
      limit: LIMITS.streamPageMessagesMax,
      bytesMax: LIMITS.streamPageBytesMax,
      nowMs,
    });
    const isEmpty = messages.length === 0;
    this.#position = messages.at(-1)?.delivery.position ?? this.#position;
    if (this.#leavesMarks) {
      this.#unread = unreadIn(messages);
      if (this.#isMarkDue(nowMs, isEmpty)) await this.#mark();
    }
    this.#isQuiet = isEmpty;
    const items = messages.map((each) => ({
      cursor: String(each.delivery.position),
      item: this.#view(each),
    }));
    return {
      page: { items, cursor: String(this.#position) },
      isEmpty,
      hasMore:
        messages.length === LIMITS.streamPageMessagesMax || bytesOf(messages) > LIMITS.streamPageBytesMax / 2,
      againMs: this.#unmarked.length === 0 ? undefined : Math.max(1, this.#markDueAtMs - nowMs),
    };
  }

  /** Writes the last marks. A mark that fails is lost; the message counts as unread. */
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
    // Also without messages: it renews the agent's presence.
    if (isEmpty && this.#isQuiet) return true;
    const isLate = this.#unmarked.length > 0 && nowMs >= this.#markDueAtMs;
    return isLate || this.#unmarked.length >= UNMARKED_MAX;
  }

  /** Runs beside the next page and does not delay it. */
  async #mark(): Promise<void> {
    const failure = await this.#marking;
    if (failure !== undefined) throw RelayError.from(failure);
    const unmarked = this.#unmarked;
    this.#unmarked = [];
    this.#marking = markDelivered(this.#parts, this.#tenant, this.#agentId, unmarked).catch(
      (reason: unknown) => {
        if (!TRANSIENT.has(RelayError.from(reason).code)) return reason;
        // A later poll writes it: a failed mark must not end the stream.
        this.#unmarked = [...unmarked, ...this.#unmarked].slice(-UNMARKED_MAX);
        return undefined;
      },
    );
  }
}

function markDueAfter(shownAtMs: number): number {
  return (Math.ceil(shownAtMs / MARK_DELAY_MS) + 1) * MARK_DELAY_MS;
}

/** A lower bound: enough to tell whether a page is nearly full. */
function bytesOf(messages: readonly MailboxMessage[]): number {
  return messages.reduce((sum, { message }) => sum + message.json.length, 0);
}
