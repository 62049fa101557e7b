import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { activeTimers } from "../../../testing/active-timers.ts";
import { mailboxTopic } from "../../core/ports/change-feed.ts";
import { InProcessChangeFeed } from "./change-feed.ts";

describe("InProcessChangeFeed", () => {
  it("serves a thousand waits with one timer", async () => {
    using feed = new InProcessChangeFeed();
    const before = activeTimers();
    const waits = Array.from({ length: 1_000 }, (_, index) =>
      feed.watch(mailboxTopic("default", `智能体-${index}`)).changed({ timeoutMs: 30_000 + index }),
    );
    assert.equal(activeTimers() - before, 1);
    feed[Symbol.dispose]();
    assert.deepEqual(new Set(await Promise.all(waits)), new Set([false]));
    assert.equal(activeTimers() - before, 0);
  });
});
