import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { journalTopic, mailboxTopic, taskTopic, type Topic } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewTask,
  BYTES_MAX,
  clashOf,
  commit,
  type OpenStore,
  READ,
  readIds,
  send,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const WRITERS = 8;
const EACH = 20;
const ALL = WRITERS * EACH;

interface Page {
  readonly items: readonly string[];
  /** Where the next page begins. */
  readonly cursor: number;
}

/** Positions, event numbers and update numbers follow the order of commits: what appears later is behind the cursor. */
export function describeCursors(open: OpenStore): void {
  describe("a reader that continues after its cursor while others commit at once", () => {
    it("gets every message of a mailbox once", async () => {
      await using store = await open();
      const sent = atOnce(async () => (await send(store)).id);
      const seen = await follow(store, mailboxTopic(TENANT, ZHIWEI), async (afterPosition) => {
        const page = await store.deliveries.available({ ...READ, afterPosition, limit: 3 });
        const items = page.map(({ message }) => message.id);
        return { items, cursor: page.at(-1)?.delivery.position ?? afterPosition };
      });
      assert.deepEqual(seen.toSorted(), (await sent).toSorted());
      assert.deepEqual(await readIds(store), seen);
    });

    it("gets every event of the journal once", async () => {
      await using store = await open();
      const sent = atOnce(async () => (await send(store)).id);
      const filter = { tenant: TENANT, type: undefined, agentId: undefined, threadId: undefined };
      const seen = await follow(store, journalTopic(TENANT), async (afterSeq) => {
        const limits = { limit: 3, scanRowsMax: 100 };
        const { events, lastSeq } = await store.journal.events({ ...filter, ...limits, afterSeq });
        assert.equal(lastSeq, afterSeq + events.length);
        return { items: events.map(({ messageId }) => messageId ?? ""), cursor: lastSeq };
      });
      assert.deepEqual(seen.toSorted(), (await sent).toSorted());
    });

    it("gets every update of a task once", async () => {
      await using store = await open();
      await commit(store, { tasks: [aNewTask({ id: "task-1" })] });
      const added = atOnce(async () => String(await addUpdate(store)));
      const query = { tenant: TENANT, taskId: "task-1", withArtifacts: true, bytesMax: BYTES_MAX, limit: 3 };
      const seen = await follow(store, taskTopic(TENANT, "task-1"), async (afterN) => {
        const { updates } = await store.tasks.updates({ ...query, afterN });
        return { items: updates.map(({ n }) => String(n)), cursor: updates.at(-1)?.n ?? afterN };
      });
      assert.deepEqual(seen.toSorted(), (await added).toSorted());
    });
  });
}

/** Several writers at once; each waits for its own commits. */
async function atOnce(write: () => Promise<string>): Promise<readonly string[]> {
  const written: string[] = [];
  const writeAll = async (): Promise<void> => {
    for (let count = 0; count < EACH; count += 1) written.push(await write());
  };
  await Promise.all(Array.from({ length: WRITERS }, writeAll));
  return written;
}

/** Adds an update under the task's version, again as often as another writer is faster. Answers its number. */
async function addUpdate(store: RelayStore): Promise<number> {
  for (;;) {
    const [task] = await store.tasks.get(TENANT, ["task-1"]);
    assert.ok(task);
    const n = task.updateCount + 1;
    const step = { kind: "message", messageId: "m7" } as const;
    const clash = await clashOf(store, {
      tasks: [{ ...task, updateCount: n }],
      taskUpdates: [{ tenant: TENANT, taskId: "task-1", n, atMs: NOON_MS, step }],
    });
    if (clash !== "task") return n;
  }
}

async function follow(
  store: RelayStore,
  topic: Topic,
  read: (cursor: number) => Promise<Page>,
): Promise<readonly string[]> {
  const seen: string[] = [];
  using watch = store.feed.watch(topic);
  for (let cursor = 0; seen.length < ALL;) {
    const page = await read(cursor);
    seen.push(...page.items);
    cursor = page.cursor;
    if (page.items.length === 0) await watch.changed({ timeoutMs: 10_000 });
  }
  return seen;
}
