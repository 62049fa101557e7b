import { LIMITS } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import type { Guard } from "./guard.ts";
import type { KeyRecord } from "../ports/access.ts";
import { DEFAULT_TENANT } from "./principal.ts";

const MINUTE_MS = 60_000;

export interface RefusedCaller {
  readonly reason: string;
  readonly transport: string;
  /** The key that the caller named, if it exists. Only its tenant's journal mentions it. */
  readonly key: Pick<KeyRecord, "id" | "tenant"> | undefined;
}

/**
 * Records refused callers, up to a limit per minute. Further ones are only counted, so that strangers cannot fill the
 * disk.
 */
export class RefusedCallers {
  readonly #guard: Guard;
  readonly #clock: Clock;
  #minuteStartedAtMs = 0;
  #recorded = 0;
  #suppressed = 0;

  constructor(parts: { readonly guard: Guard; readonly clock: Clock }) {
    this.#guard = parts.guard;
    this.#clock = parts.clock;
  }

  async record({ reason, transport, key }: RefusedCaller): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (Math.abs(nowMs - this.#minuteStartedAtMs) >= MINUTE_MS) {
      this.#minuteStartedAtMs = nowMs;
      this.#recorded = 0;
    }
    if (this.#recorded >= LIMITS.unauthenticatedEventsPerMinuteMax) {
      this.#suppressed += 1;
      return;
    }
    const suppressed = this.#suppressed;
    this.#recorded += 1;
    this.#suppressed = 0;
    await this.#guard.record(key?.tenant ?? DEFAULT_TENANT, {
      type: "access.unauthenticated",
      atMs: nowMs,
      actor: "anonymous",
      agentId: null,
      messageId: null,
      taskId: null,
      threadId: null,
      data: {
        reason,
        transport,
        ...(key === undefined ? {} : { key_id: key.id }),
        ...(suppressed === 0 ? {} : { suppressed }),
      },
    });
  }
}
