import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProxiedRelay } from "../../../../client/testing/proxied-relay.ts";
import { LULU, ZHIWEI } from "../../../testing/cli-relay.ts";
import { type CliRun, cliRun } from "../../../testing/cli-run.ts";
import type { Environment } from "../../config/setting-reader.ts";

const NODE = process.execPath;
const SOCKET = `upgrade /mailbox/${encodeURIComponent(ZHIWEI)}/ws`;
const STREAM = `GET /mailbox/${encodeURIComponent(ZHIWEI)}/stream`;
const READ = `GET /mailbox/${encodeURIComponent(ZHIWEI)}`;

interface Running {
  readonly ended: Promise<CliRun>;
  /** Resolves once stdout holds the text. */
  prints(text: string): Promise<void>;
  /** Ends it as Ctrl-C does. */
  interrupt(): Promise<CliRun>;
}

async function open(env: Readonly<Record<string, string>> = {}): Promise<ProxiedRelay> {
  const relay = await ProxiedRelay.start(env);
  for (const agent_id of [LULU, ZHIWEI]) await relay.direct.register({ agent_id });
  return relay;
}

function start(relay: ProxiedRelay, argv: readonly string[], env: Environment = {}): Running {
  const ending = new AbortController();
  let printed = "";
  let wake = (): void => {};
  const ended = cliRun(argv, {
    env: { A2A_RELAY_URL: relay.url, ...env },
    signal: ending.signal,
    onStdout: (text) => {
      printed = text;
      wake();
    },
  });
  return {
    ended,
    async prints(text) {
      while (!printed.includes(text)) await new Promise<void>((resolve) => (wake = resolve));
    },
    interrupt: () => {
      ending.abort();
      return ended;
    },
  };
}

async function send(relay: ProxiedRelay, body: string): Promise<string> {
  return (await relay.direct.send({ from: LULU, to: ZHIWEI, subject: "x", body })).receipt.message_id;
}

function bodies({ stdout }: CliRun): readonly string[] {
  const lines = stdout.trim().split("\n");
  return lines.map((line) => (JSON.parse(line) as { message: { body: string } }).message.body);
}

describe("watch", () => {
  for (const sockets of ["pass", "refuse"] as const) {
    const how = sockets === "pass" ? "over a WebSocket" : "over a stream where no WebSocket can be opened";
    it(`prints messages as they arrive ${how}, once each, across a restart of the relay and a cut`, async () => {
      await using relay = await open();
      relay.sockets = sockets;
      await send(relay, "之前");
      const watch = start(relay, ["watch", "--agent", ZHIWEI, "--json"]);
      await watch.prints("之前");
      await relay.stopRelay();
      await relay.startRelay();
      await send(relay, "重启之后");
      await watch.prints("重启之后");
      relay.cut();
      await send(relay, "断线之后");
      await watch.prints("断线之后");
      const run = await watch.interrupt();
      assert.equal(run.code, 130);
      assert.deepEqual(bodies(run), ["之前", "重启之后", "断线之后"]);
      assert.ok(relay.seen.includes(SOCKET));
      assert.equal(relay.seen.includes(STREAM), sockets === "refuse");
    });
  }

  it("marks what it printed as delivered, and with --once nothing but the one message", async () => {
    await using relay = await open();
    for (const body of ["一", "二"]) await send(relay, body);
    const statuses = async (): Promise<readonly string[]> =>
      (await relay.direct.readMailbox(ZHIWEI, { peek: true })).messages.map(({ status }) => status);
    const once = await start(relay, ["watch", "--agent", ZHIWEI, "--json", "--once"]).ended;
    assert.deepEqual(bodies(once), ["一"]);
    assert.deepEqual(await statuses(), ["DELIVERED", "PENDING"]);
    assert.ok(!relay.seen.includes(SOCKET));
    const watch = start(relay, ["watch", "--agent", ZHIWEI]);
    await watch.prints("二");
    while ((await statuses()).includes("PENDING"))
      await relay.direct.events({ wait_ms: 50, since: "latest" });
    await watch.interrupt();
    assert.ok(relay.seen.includes(SOCKET));
  });

  it("acknowledges what it printed, and only then", async () => {
    await using relay = await open();
    const watch = start(relay, ["watch", "--agent", ZHIWEI, "--ack"]);
    for (const body of ["一", "二", "三"]) await send(relay, body);
    await watch.prints("三");
    while ((await relay.direct.queue({ agent: ZHIWEI })).entries.length > 0)
      await relay.direct.events({ wait_ms: 50, since: "latest" });
    await watch.interrupt();
  });

  for (const streams of ["refuse", "hold"] as const) {
    const why = streams === "refuse" ? "knows no streams either" : "gathers streams";
    it(`polls where a proxy refuses WebSockets and ${why}`, async () => {
      await using relay = await open();
      relay.sockets = "refuse";
      relay.streams = streams;
      await send(relay, "一");
      const watch = start(relay, ["watch", "--agent", ZHIWEI, "--json", "--interval", "5s"]);
      await watch.prints("一");
      await send(relay, "二");
      await watch.prints("二");
      assert.deepEqual(bodies(await watch.interrupt()), ["一", "二"]);
      const ways = [SOCKET, STREAM, READ].map((way) => relay.seen.filter((line) => line === way).length);
      assert.deepEqual(ways.slice(0, 2), [1, 1]);
      // One to find out why no WebSocket opens, then the long polls.
      assert.ok((ways[2] ?? 0) >= 3);
    });
  }

  it("ends with 4 where no relay answers at first, and so do the other commands that wait", async () => {
    const waiting = [
      ["watch", "--agent", ZHIWEI],
      ["watch", "--agent", ZHIWEI, "--exec", "--", NODE],
      ["events", "--follow"],
    ];
    for (const argv of waiting) {
      const { code, stderr } = await cliRun(argv, { env: { A2A_RELAY_URL: "http://127.0.0.1:1" } });
      assert.equal(code, 4, stderr);
      assert.match(stderr, /cannot reach the relay/);
    }
  });

  it("ends with the error of the relay about an unknown agent", async () => {
    await using relay = await open();
    const { code, stderr } = await start(relay, ["watch", "--agent", "stranger@demo"]).ended;
    assert.equal(code, 1);
    assert.match(stderr, /no agent is registered as "stranger@demo"/);
  });
});

describe("watch --exec", () => {
  const ways = [
    ["by notices over a WebSocket", "pass", "pass", SOCKET],
    ["by a stream of notices, where no WebSocket can be opened", "refuse", "pass", STREAM],
    ["by peeking, where no stream gets through either", "refuse", "refuse", READ],
  ] as const;
  for (const [how, sockets, streams, way] of ways) {
    it(`waits for messages ${how}, and runs the program once for each message`, async () => {
      await using relay = await open();
      relay.sockets = sockets;
      relay.streams = streams;
      const code = "process.stdin.on('data', (d) => console.log(JSON.parse(d).body))";
      const watch = start(relay, ["watch", "--agent", ZHIWEI, "--exec", "--", NODE, "-e", code]);
      // The first read finds out why no socket opens.
      await relay.came((line) => line === way, way === READ ? 2 : 1);
      for (const body of ["一", "二"]) {
        const id = await send(relay, body);
        await watch.prints(body);
        while ((await relay.direct.message(id)).delivery?.state !== "acknowledged") {
          await relay.direct.events({ wait_ms: 50, since: "latest" });
        }
      }
      const { stdout } = await watch.interrupt();
      assert.equal(stdout, "一\n二\n");
      assert.ok(relay.seen.includes(SOCKET));
      assert.equal(relay.seen.includes(STREAM), sockets === "refuse");
      assert.equal(relay.seen.filter((line) => line === READ).length > 1, way === READ);
    });
  }
});

describe("watch --exec with an agent's own key", () => {
  const code = "process.stdin.on('data', (d) => console.log(JSON.parse(d).body))";
  const argv = ["watch", "--agent", ZHIWEI, "--exec", "--once", "--", NODE, "-e", code];
  const queueReads = (relay: ProxiedRelay): number =>
    relay.seen.filter((line) => line === "GET /queue").length;

  for (const lostReads of [0, 5]) {
    const when = lostReads === 0 ? "" : ", also when the queue could not be read at first";
    it(`gives back a message whose lease it never heard of, and then runs the program${when}`, async () => {
      await using relay = await open({ A2A_RELAY_API_KEY: "operator-key-of-this-test" });
      const { key } = await relay.direct.createKey({ agent_id: ZHIWEI });
      const id = await send(relay, "它的租约丢了");
      relay.losesLease = true;
      relay.drops = (line) => line === "GET /queue" && queueReads(relay) <= lostReads;
      const { stdout, stderr } = await start(relay, argv, { A2A_RELAY_API_KEY: key }).ended;
      assert.equal(stdout, "它的租约丢了\n", stderr);
      assert.equal((await relay.direct.message(id)).delivery?.state, "acknowledged");
      assert.equal(queueReads(relay), lostReads + 1);
    });
  }
});

describe("events --follow", () => {
  for (const streams of ["pass", "refuse"] as const) {
    const how = streams === "pass" ? "as a stream" : "where no stream gets through";
    it(`shows what happens, ${how}, also after the relay was restarted`, async () => {
      await using relay = await open();
      relay.streams = streams;
      const before = await send(relay, "before");
      const { cursor } = await relay.direct.events({ since: "latest" });
      const type = ["--type", "message.accepted"];
      const follow = start(relay, [
        "events",
        "--follow",
        "--since",
        cursor,
        ...type,
        "--json",
        "--interval",
        "5s",
      ]);
      const first = await send(relay, "first");
      await follow.prints(first);
      await relay.stopRelay();
      await relay.startRelay();
      const second = await send(relay, "second");
      await follow.prints(second);
      const { stdout } = await follow.interrupt();
      const ids = stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { message_id: string }).message_id);
      assert.deepEqual(ids, [first, second]);
      assert.ok(!ids.includes(before));
    });
  }

  it("begins with now, where nothing else was asked for", async () => {
    await using relay = await open();
    const before = await send(relay, "before");
    const follow = start(relay, ["events", "--follow", "--json"]);
    // Where it begins, and the stream from there.
    await relay.came((line) => line === "GET /events", 2);
    const after = await send(relay, "after");
    await follow.prints(after);
    assert.ok(!(await follow.interrupt()).stdout.includes(before));
  });
});
