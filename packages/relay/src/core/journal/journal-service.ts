import {
  EventsQuerySchema,
  type EventsResponse,
  formatInstant,
  LIMITS,
  parseRecordId,
  quote,
  RelayError,
  type ThreadResponse,
  ThreadsQuerySchema,
  type ThreadsResponse,
  type VerifyResponse,
} from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import type { Anchors } from "../ports/archive.ts";
import { journalTopic } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { parseCursor } from "../mechanisms/cursor.ts";
import { follow } from "../mechanisms/follow.ts";
import type { Throttle } from "../mechanisms/throttle.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { WaitQuota } from "../access/wait-quota.ts";
import type { WaitOptions } from "../mechanisms/wait-options.ts";
import { EVENT_TYPES, type EventFilter, type EventPage } from "../ports/journal.ts";
import { viewEvent } from "./event-view.ts";
import { verifyChain } from "./verify-chain.ts";
import { messageOf } from "../mechanisms/stored-json.ts";
import { agentsNamed } from "../rules/agent-names.ts";

export interface JournalParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly anchors: Anchors;
  readonly throttle: Throttle;
  readonly waitQuota: WaitQuota;
}

export interface JournalSettings {
  /** How often a stream without events sends a heartbeat. */
  readonly heartbeatMs: number;
}

/** Some events, and the cursor after them. */
export type EventsPage = Omit<EventsResponse, "has_more">;

/** The cursor for future events only. */
const LATEST = "latest";

/** A parsed query for events. */
interface EventsWanted {
  readonly filter: Omit<EventFilter, "afterSeq">;
  readonly afterSeq: number;
  readonly waitMs: number;
}

const parseEvents = parserOf(EventsQuerySchema, "query");
const parseThreads = parserOf(ThreadsQuerySchema, "query");

/** Operators read events and threads, and verify the chain of events. */
export class JournalService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #anchors: Anchors;
  readonly #throttle: Throttle;
  readonly #waitQuota: WaitQuota;
  readonly #heartbeatMs: number;

  constructor(parts: JournalParts, settings: JournalSettings) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#anchors = parts.anchors;
    this.#throttle = parts.throttle;
    this.#waitQuota = parts.waitQuota;
    this.#heartbeatMs = settings.heartbeatMs;
  }

  async events(principal: Principal, input: unknown, waiting: WaitOptions = {}): Promise<EventsResponse> {
    const { filter, waitMs, ...start } = await this.#read(principal, input);
    if (waitMs === 0)
      return viewPage(await this.#store.journal.events({ ...filter, afterSeq: start.afterSeq }));
    const { signal } = waiting;
    using watch = this.#waitQuota.watch(principal, journalTopic(principal.tenant));
    const endMs = this.#clock.nowMs() + waitMs;
    let { afterSeq } = start;
    for (;;) {
      const page = await this.#store.journal.events({ ...filter, afterSeq });
      const leftMs = endMs - this.#clock.nowMs();
      const done = page.events.length > 0 || page.hasMore || leftMs <= 0 || signal?.aborted === true;
      if (done || !(await watch.changed({ timeoutMs: leftMs, signal }))) {
        return viewPage(page);
      }
      await this.#guard.assertStillValid(principal);
      afterSeq = page.lastSeq;
    }
  }

  /** Yields pages of events until the signal is aborted. Refuses before the first page. */
  async follow(
    principal: Principal,
    input: unknown,
    { signal }: WaitOptions = {},
  ): Promise<AsyncIterable<EventsPage>> {
    const { filter, ...start } = await this.#read(principal, input);
    let { afterSeq } = start;
    const limit = Math.min(filter.limit, LIMITS.streamPageMessagesMax);
    return follow({
      watch: this.#waitQuota.watch(principal, journalTopic(principal.tenant)),
      clock: this.#clock,
      throttle: this.#throttle,
      heartbeatMs: this.#heartbeatMs,
      signal,
      poll: async () => {
        const { events, hasMore, lastSeq } = await this.#store.journal.events({ ...filter, limit, afterSeq });
        afterSeq = lastSeq;
        const page = { events: events.map(viewEvent), cursor: String(lastSeq) };
        return { page, isEmpty: events.length === 0, hasMore };
      },
      assertAllowed: () => this.#guard.assertStillValid(principal),
    });
  }

  async threads(principal: Principal, input: unknown): Promise<ThreadsResponse> {
    await this.#guard.authorize(principal, "threads.read");
    const query = parseThreads(input);
    const { tenant } = principal;
    const page = await this.#store.messages.threads({
      tenant,
      agent:
        query.agent === undefined ? undefined : await this.#directory.resolve(tenant, query.agent, "agent"),
      beforePosition:
        query.before === undefined ? Number.MAX_SAFE_INTEGER : parseCursor(query.before, "before"),
      limit: query.limit ?? LIMITS.listLimitDefault,
      scanRowsMax: LIMITS.scanRowsMax,
    });
    return {
      threads: page.threads.map((thread) => ({
        thread_id: thread.threadId,
        subject: thread.subject,
        participants: thread.participants,
        message_count: thread.messageCount,
        open_count: thread.openCount,
        first_at: formatInstant(thread.firstAtMs),
        last_at: formatInstant(thread.lastAtMs),
      })),
      ...(page.nextPosition === undefined ? {} : { cursor: String(page.nextPosition) }),
    };
  }

  async thread(principal: Principal, threadId: string): Promise<ThreadResponse> {
    await this.#guard.authorize(principal, "threads.read");
    const page = await this.#store.messages.thread({
      tenant: principal.tenant,
      threadId: parseRecordId(threadId, "thread_id"),
      limit: LIMITS.listLimitMax,
      bytesMax: LIMITS.answerBytesMax,
    });
    if (page.messages.length === 0) throw new RelayError("not_found", `there is no thread ${threadId}`);
    const messages = page.messages.map(({ message, delivery }) => ({
      ...messageOf(message),
      ...(delivery === undefined ? {} : { delivery_state: delivery.state }),
    }));
    return { thread_id: threadId, messages, truncated: page.hasMore };
  }

  async #read(principal: Principal, input: unknown): Promise<EventsWanted> {
    await this.#guard.authorize(principal, "events.read");
    const query = parseEvents(input);
    assertKnownType(query.type);
    const { tenant } = principal;
    return {
      filter: {
        tenant,
        type: query.type,
        agentId: query.agent === undefined ? undefined : await this.#agentNamed(tenant, query.agent),
        threadId: query.thread,
        taskId: undefined,
        limit: query.limit ?? LIMITS.listLimitDefault,
        scanRowsMax: LIMITS.scanRowsMax,
      },
      afterSeq:
        query.since === LATEST
          ? (await this.#store.journal.chain(tenant)).head.seq
          : parseCursor(query.since, "since"),
      waitMs: query.wait_ms ?? 0,
    };
  }

  /** An unknown name is taken as the id of an agent that has left. */
  async #agentNamed(tenant: string, name: string): Promise<string> {
    const [first, ...others] = await agentsNamed(this.#store, tenant, name);
    return first === undefined || others.length > 0 ? name : first;
  }

  async verify(principal: Principal): Promise<VerifyResponse> {
    await this.#guard.authorize(principal, "journal.verify");
    const parts = { store: this.#store, clock: this.#clock, anchors: this.#anchors };
    return verifyChain(parts, principal.tenant);
  }
}

function viewPage({ events, lastSeq, hasMore }: EventPage): EventsResponse {
  return { events: events.map(viewEvent), cursor: String(lastSeq), has_more: hasMore };
}

/** A filter that can never match is a mistake, not an empty list. */
function assertKnownType(type: string | undefined): void {
  if (type === undefined || (EVENT_TYPES as readonly string[]).includes(type)) return;
  throw new RelayError(
    "invalid_argument",
    `type: there are no events of type ${quote(type)}; there are ${EVENT_TYPES.join(", ")}`,
  );
}

const READY_CACHED_MS = 1_000;

/** Checks that a write reaches the disk. Probes within one second share one write. */
export class Readiness {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #answer: Promise<void> = Promise.resolve();

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  async check(): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#askedAtMs >= READY_CACHED_MS || nowMs < this.#askedAtMs) {
      this.#askedAtMs = nowMs;
      this.#answer = this.#store.probe(nowMs);
    }
    return this.#answer;
  }
}
