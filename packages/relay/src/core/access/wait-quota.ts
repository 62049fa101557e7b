import { LIMITS, RelayError } from "@a2a-relay/protocol";
import type { Principal } from "./principal.ts";
import type { Topic, Watch } from "../ports/change-feed.ts";
import type { RelayStore } from "../ports/relay-store.ts";

/**
 * Limits how many streams, sockets and long polls one caller may have open: an agent over all its keys, an operator for
 * each key. The relay's operator has no limit.
 */
export class WaitQuota {
  readonly #store: Pick<RelayStore, "feed">;
  readonly #counts = new Map<string, number>();

  constructor(parts: { readonly store: Pick<RelayStore, "feed"> }) {
    this.#store = parts.store;
  }

  /** `resource_exhausted` when the caller has too many open waits. */
  watch(principal: Principal, topic: Topic): Watch {
    const caller = callerOf(principal);
    if (caller === undefined) return this.#store.feed.watch(topic);
    const count = this.#counts.get(caller) ?? 0;
    if (count >= LIMITS.waitsOfCallerMax) {
      throw new RelayError(
        "resource_exhausted",
        `you wait ${count} times already, in streams, sockets and long polls; end some of them first`,
      );
    }
    const watch = this.#store.feed.watch(topic);
    this.#counts.set(caller, count + 1);
    return new CountedWatch(watch, () => this.#left(caller));
  }

  #left(caller: string): void {
    const count = (this.#counts.get(caller) ?? 0) - 1;
    if (count > 0) this.#counts.set(caller, count);
    else this.#counts.delete(caller);
  }
}

/** Undefined for the relay's operator. */
function callerOf(principal: Principal): string | undefined {
  if (principal.kind === "agent") return `agent ${principal.tenant} ${principal.agentId}`;
  return principal.keyId === undefined ? undefined : `key ${principal.keyId}`;
}

class CountedWatch implements Watch {
  readonly #watch: Watch;
  readonly #onEnd: () => void;
  #isOver = false;

  constructor(watch: Watch, onEnd: () => void) {
    this.#watch = watch;
    this.#onEnd = onEnd;
  }

  changed(options: Parameters<Watch["changed"]>[0]): Promise<boolean> {
    return this.#watch.changed(options);
  }

  [Symbol.dispose](): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch[Symbol.dispose]();
    this.#onEnd();
  }
}
