import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { type MailboxItem, RelayError, type RelayErrorCode, SOCKET_CLOSE } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { openPair, type SocketPair } from "../../../testing/socket-pair.ts";
import type { MailboxPage } from "../../core/mailboxes/mailbox-stream.ts";
import { Gateway } from "../gateway/gateway.ts";
import { MailboxSocket } from "./mailbox-socket.ts";
import { HttpMetrics } from "../http/http-metrics.ts";
import { HeartbeatTimer } from "./heartbeat-timer.ts";

interface Running {
  readonly failures: readonly unknown[];
  readonly closed: Promise<readonly [code: number, reason: string]>;
  readonly stopping: AbortController;
}

/** A socket of zhiwei's mailbox that sends these pages. */
function run(core: CoreOnMemory, pair: SocketPair, pages?: AsyncIterable<MailboxPage>): Running {
  const failures: unknown[] = [];
  const [stopping, ended] = [new AbortController(), new AbortController()];
  const authenticator = { authenticate: async () => core.zhiwei };
  const host = {
    gateway: new Gateway({ ...core, authenticator }),
    meter: new HttpMetrics(async () => new Map()).streams,
    heartbeats: new HeartbeatTimer(60_000),
    heartbeatMs: 60_000,
    stallMs: 60_000,
    onFailure: (reason: unknown) => void failures.push(reason),
  };
  const session = { principal: core.zhiwei, agent: ZHIWEI, isNotice: false, since: "0", ended, pages };
  const closed = once(pair.theirs, "close").then((values) => {
    const [code, reason] = values as [number, Buffer];
    return [code, reason.toString()] as const;
  });
  new MailboxSocket(core, { ...session, stopping: stopping.signal }, pair.ours, host).run();
  return { failures, closed, stopping };
}

async function* failing(code: RelayErrorCode): AsyncGenerator<MailboxPage> {
  yield { items: [{ cursor: "1", item: {} as MailboxItem }], cursor: "1" };
  throw new RelayError(code, `it is ${code}`);
}

async function* ending(): AsyncGenerator<MailboxPage> {
  yield { items: [{ cursor: "1", item: {} as MailboxItem }], cursor: "1" };
}

describe("a socket whose stream of messages ends", () => {
  for (const [code, close] of [
    ["unavailable", SOCKET_CLOSE.internal],
    ["storage_full", SOCKET_CLOSE.internal],
    ["resource_exhausted", SOCKET_CLOSE.internal],
    ["internal", SOCKET_CLOSE.internal],
    ["unauthenticated", SOCKET_CLOSE.unauthenticated],
    ["permission_denied", SOCKET_CLOSE.refused],
    ["unknown_agent", SOCKET_CLOSE.refused],
    ["not_found", SOCKET_CLOSE.refused],
  ] as const) {
    it(`is closed with ${close} when the reason is ${code}`, { timeout: 10_000 }, async () => {
      await using core = await coreOnMemory();
      await using pair = await openPair();
      const { closed, failures } = run(core, pair, failing(code));
      assert.deepEqual(await closed, [close, `it is ${code}`]);
      assert.equal(failures.length, code === "internal" ? 1 : 0);
    });
  }

  it("is closed also without an error, so that the client reconnects", { timeout: 10_000 }, async () => {
    await using core = await coreOnMemory();
    await using pair = await openPair();
    const [code, reason] = await run(core, pair, ending()).closed;
    assert.equal(code, SOCKET_CLOSE.internal);
    assert.match(reason, /open the socket again/);
  });

  it("stays open when it is quiet", { timeout: 10_000 }, async () => {
    await using core = await coreOnMemory();
    await using pair = await openPair();
    const { stopping, closed } = run(core, pair);
    pair.theirs.send(JSON.stringify({ id: "a", verb: "lease" }));
    const [answer] = (await once(pair.theirs, "message")) as [Buffer];
    assert.deepEqual(JSON.parse(answer.toString()), { type: "answer", id: "a", body: { messages: [] } });
    stopping.abort();
    assert.equal((await closed)[0], SOCKET_CLOSE.stopping);
  });
});

describe("a lease over a socket", () => {
  it("is given back when its answer cannot be written", { timeout: 10_000 }, async () => {
    await using core = await coreOnMemory();
    await using pair = await openPair();
    const { receipt } = await core.send();
    run(core, pair);
    // As when the connection breaks while the answer is written.
    pair.ours.send = (...asked: readonly unknown[]): void => {
      const [answer, onSent] = asked as [string, (reason: Error) => void];
      assert.match(answer, /"lease":\{/);
      onSent(new Error("the connection broke"));
    };
    pair.theirs.send(JSON.stringify({ id: "a", verb: "lease", input: { worker: "w1" } }));
    using watch = core.store.feed.watch(`journal:default`);
    for (;;) {
      const { events } = await core.journal.events(core.operator, { type: "message.released" });
      if (events.length === 1) break;
      await watch.changed({ timeoutMs: 1_000 });
    }
    assert.equal((await core.delivery(receipt.message_id)).state, "available");
  });
});
