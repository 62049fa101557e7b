import { RelayError } from "@a2a-relay/protocol";
import type { Anchor, Anchors } from "../ports/archive.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import { anchorProblem, passedByRetention } from "./verify-anchors.ts";

/**
 * Tells the anchors where each chain stands. A chain that does not hold what the last anchor has seen is
 * anchored no further: a new anchor would cover up for it.
 */
export class Anchoring {
  readonly #store: RelayStore;
  readonly #anchors: Anchors;
  readonly #clock: Clock;
  readonly #mutex: KeyedMutex;

  constructor(parts: { readonly store: RelayStore; readonly anchors: Anchors; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#anchors = parts.anchors;
    this.#clock = parts.clock;
    this.#mutex = new KeyedMutex(parts.clock);
  }

  /** All chains that moved, also those of tenants that only the anchors still know. */
  async keepAll(): Promise<void> {
    const tenants = (await this.#store.tenants()).map(({ id }) => id);
    await this.#keep((latest) => new Set([...tenants, ...latest.keys()]));
  }

  /** Answers once an anchor has seen all events that are there now. */
  async keep(tenant: string): Promise<void> {
    await this.#keep(() => [tenant]);
  }

  async #keep(choose: (latest: ReadonlyMap<string, Anchor>) => Iterable<string>): Promise<void> {
    await this.#mutex.run("anchors", async () => {
      const latest = await this.#anchors.latest();
      const due: Anchor[] = [];
      const problems: string[] = [];
      for (const tenant of choose(latest)) {
        const head = await this.#store.chainHead(tenant);
        const before = latest.get(tenant);
        if (head.seq === (before?.seq ?? 0) && (before === undefined || head.hash === before.hash)) continue;
        const problem = before === undefined ? undefined : await this.#problem(before);
        if (problem === undefined) due.push({ tenant, ...head, atMs: this.#clock.nowMs() });
        else problems.push(`tenant ${tenant}: ${problem}`);
      }
      if (due.length > 0) await this.#anchors.keep(due);
      if (problems.length > 0) throw new RelayError("internal", problems.join("; "));
    });
  }

  async #problem(before: Anchor): Promise<string | undefined> {
    const problem = await anchorProblem(this.#store, before);
    return problem ?? passedByRetention(before, await this.#store.chainAnchor(before.tenant));
  }
}
