import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HEARTBEAT_HEADER, operations } from "@a2a-relay/protocol";
import { type StreamEnd, type WireAnswer, type WireRequest, WireServer } from "../../testing/wire-server.ts";
import { HttpExchange } from "../http/http-exchange.ts";
import type { StreamedItem } from "./live-client.ts";
import { fillClientOptions } from "../http/relay-client-options.ts";
import { RelayClient } from "./relay-client.ts";
import { ResumedStream } from "../live/resumed-stream.ts";

const MESSAGES = 6;
const AGENT = "知微@demo";

/** Message n has the cursor 10 n, so that cursors cannot be mistaken for counts. */
function eventText(number: number, name = "message"): string {
  return `id: ${number * 10}\nevent: ${name}\ndata: {"id":"m${number}","body":"知微你好 ${number}"}\n\n`;
}

function after(request: WireRequest): number {
  return Number(request.query.get("since") ?? 0) / 10;
}

/** Everything after the cursor that was asked for, and then silence. */
function theRest(request: WireRequest): WireAnswer {
  return {
    stream: (write) => {
      write(": hello\n\n");
      for (let number = after(request) + 1; number <= MESSAGES; number += 1) write(eventText(number));
      return "silence";
    },
  };
}

async function take(stream: AsyncIterable<StreamedItem>, count: number): Promise<readonly string[]> {
  const taken: string[] = [];
  for await (const { item, cursor } of stream) {
    taken.push(`${item.id}@${cursor}`);
    if (taken.length === count) break;
  }
  return taken;
}

const ALL = Array.from({ length: MESSAGES }, (_, index) => `m${index + 1}@${(index + 1) * 10}`);

const SILENT: WireAnswer = { stream: () => "silence" };

function refusal(status: number, code: string): WireAnswer {
  return { status, json: { error: { code, message: `because ${code}` } } };
}

describe("a mailbox stream", () => {
  for (const end of ["end", "reset"] as const) {
    for (const torn of ["", 'id: 990\nevent: message\ndata: {"id":"torn']) {
      const how = `${end === "end" ? "ended" : "broken off"}${torn === "" ? "" : " in the middle of an event"}`;
      it(`goes on without gap or repetition when it is ${how}, at whatever index`, async () => {
        for (let cut = 0; cut <= MESSAGES; cut += 1) {
          await using server = await WireServer.start((request) => {
            if (server.requests.length > 1) return theRest(request);
            return { stream: (write) => writeUpTo(cut, torn, end, write) };
          });
          const client = new RelayClient({ url: server.url, retryDelayMs: 0 });
          assert.deepEqual(await take(client.streamMailbox(AGENT), MESSAGES), ALL, `cut at ${cut}`);
        }
      });
    }
  }

  it("goes on when it is cut after each single event", async () => {
    await using server = await WireServer.start((request) => ({
      stream: (write) => {
        write(eventText(after(request) + 1));
        return "reset";
      },
    }));
    const client = new RelayClient({ url: server.url, retryDelayMs: 0 });
    assert.deepEqual(await take(client.streamMailbox(AGENT), MESSAGES), ALL);
    assert.deepEqual(
      server.requests.map(({ query }) => query.get("since")),
      [null, "10", "20", "30", "40", "50"],
    );
  });

  it("asks for what it was told to, with the key, and hangs up when its reader leaves", async () => {
    await using server = await WireServer.start(theRest);
    const client = new RelayClient({ url: server.url, apiKey: "k-1" });
    const query = { since: "20", peek: true };
    assert.deepEqual(await take(client.streamMailbox(AGENT, query), 1), ["m3@30"]);
    const [request] = server.requests;
    assert.equal(request?.path, `/mailbox/${encodeURIComponent(AGENT)}/stream`);
    assert.equal(String(request?.query), "peek=true&since=20");
    assert.equal(request?.headers.accept, "text/event-stream");
    assert.equal(request?.headers.authorization, "Bearer k-1");
    if (request !== undefined && !request.signal.aborted) await aborted(request.signal);
  });

  it("brings notices where only those were asked for, and nothing that it does not know", async () => {
    await using server = await WireServer.start(() => ({
      stream: (write) => {
        write(`${eventText(1, "news")}${eventText(2, "notice")}`);
        return "silence";
      },
    }));
    const client = new RelayClient({ url: server.url });
    for await (const { notice, cursor } of client.streamMailbox(AGENT, { notice: true })) {
      assert.deepEqual([notice, cursor], [{ id: "m2", body: "知微你好 2" }, "20"]);
      break;
    }
    assert.equal(server.requests[0]?.query.get("notice"), "true");
  });

  it("waits for a relay that is away, and says so each time", async () => {
    const answers: WireAnswer[] = [
      refusal(503, "unavailable"),
      "reset",
      refusal(500, "internal"),
      refusal(429, "resource_exhausted"),
    ];
    await using server = await WireServer.start(
      (request) => answers[server.requests.length - 1] ?? theRest(request),
    );
    const client = new RelayClient({ url: server.url, retryDelayMs: 0 });
    const away: string[] = [];
    const options = { onAway: ({ code }: { readonly code: string }) => void away.push(code) };
    assert.deepEqual(await take(client.streamMailbox(AGENT, {}, options), 1), ["m1@10"]);
    assert.deepEqual(away, ["unavailable", "unavailable", "internal", "resource_exhausted"]);
  });

  for (const [status, code] of [
    [400, "invalid_argument"],
    [401, "unauthenticated"],
    [403, "permission_denied"],
    [404, "unknown_agent"],
  ] as const) {
    it(`ends with ${code}, which trying again cannot mend, also in the middle`, async () => {
      await using server = await WireServer.start(() =>
        server.requests.length === 1
          ? { stream: (write) => writeUpTo(2, "", "reset", write) }
          : refusal(status, code),
      );
      const client = new RelayClient({ url: server.url, retryDelayMs: 0 });
      await assert.rejects(take(client.streamMailbox(AGENT), 3), { code, message: `because ${code}` });
      assert.equal(server.requests.length, 2);
    });
  }

  it("is told from a page that is no stream", async () => {
    await using server = await WireServer.start(() => ({ text: "<html>Welcome" }));
    const client = new RelayClient({ url: server.url });
    await assert.rejects(take(client.streamMailbox(AGENT), 1), {
      code: "unavailable",
      message: /answered 200 with text\/html "<html>Welcome" instead of a stream of events/,
    });
  });

  it("ends with the reason of the signal: while it is opened, while it is silent, and between two tries", async () => {
    const answers: Record<string, WireAnswer> = {
      opening: "silence",
      silent: { stream: (write) => (write(":\n"), "silence") },
      between: refusal(503, "unavailable"),
    };
    for (const [when, answer] of Object.entries(answers)) {
      await using server = await WireServer.start(() => answer);
      const client = new RelayClient({ url: server.url, retryDelayMs: 10_000 });
      const leaving = new AbortController();
      const arrived = server.next(() => true);
      const reading = take(client.streamMailbox(AGENT, {}, { signal: leaving.signal }), 1);
      await arrived;
      leaving.abort(new Error(`left while ${when}`));
      await assert.rejects(reading, new RegExp(`left while ${when}`));
    }
  });
});

describe("a stream of the journal", () => {
  it("that begins with the latest event begins at that end, also when it breaks before the first one", async () => {
    let head = 3;
    await using server = await WireServer.start((request) => {
      if (request.query.get("since") === "latest") {
        return { json: { events: [], cursor: String(head * 10), has_more: false } };
      }
      if (server.requests.length > 2) {
        return { stream: (write) => (write(eventText(after(request) + 1, "event")), "silence") };
      }
      // Something happens while the stream is broken.
      head += 1;
      return { stream: (write) => (write(": hello\n\n"), "reset") };
    });
    const client = new RelayClient({ url: server.url, retryDelayMs: 0 });
    for await (const { cursor } of client.streamEvents({ since: "latest", type: "message.dead" })) {
      assert.equal(cursor, "40");
      break;
    }
    assert.deepEqual(
      server.requests.map(({ path, query }) => `${path}?${query}`),
      [
        "/events?since=latest&limit=1",
        "/events?type=message.dead&since=30",
        "/events?type=message.dead&since=30",
      ],
    );
  });
});

describe("a stream of a task", () => {
  it("ends when the relay says that nothing more will come", async () => {
    await using server = await WireServer.start((request) => {
      if (after(request) === 2) return { status: 204, text: "" };
      return {
        stream: (write) => {
          write(eventText(1, "event"));
          write(eventText(2, "event"));
          return "end";
        },
      };
    });
    const client = new RelayClient({ url: server.url, retryDelayMs: 0 });
    const cursors: string[] = [];
    for await (const { cursor } of client.streamTask("t/1")) cursors.push(cursor);
    assert.deepEqual(cursors, ["10", "20"]);
    assert.equal(server.requests[0]?.path, "/tasks/t%2F1/events");
  });
});

describe("a stream that is opened again", () => {
  const setup = (server: WireServer, more: object = {}) => {
    const options = fillClientOptions({ url: server.url });
    const parts = {
      exchange: new HttpExchange(options),
      delays: { firstMs: 8, maxMs: 64 },
      random: () => 1,
      ...more,
    };
    const call = {
      operation: operations.mailboxes.stream,
      params: { agent_id: AGENT },
      since: undefined,
    };
    return new ResumedStream(call, parts, {});
  };

  it("counts as dead without a byte for the idle time, and heartbeats are bytes", async () => {
    await using server = await WireServer.start((request) => {
      if (server.requests.length > 1) return theRest(request);
      return {
        stream: async (write) => {
          write(eventText(1));
          for (let beat = 0; beat < 6; beat += 1) {
            await new Promise((resolve) => setTimeout(resolve, 20));
            write(": heartbeat\n\n");
          }
          write(eventText(2));
          return "silence" as const;
        },
      };
    });
    const stream = setup(server, { idleMs: 100 });
    const ids: (string | undefined)[] = [];
    for (let index = 0; index < 3; index += 1) ids.push((await stream.next())?.id);
    stream.close();
    assert.deepEqual(ids, ["10", "20", "30"]);
    assert.equal(server.requests[1]?.query.get("since"), "20");
  });

  it("may be silent for as long as three of the heartbeats that the relay promises", async () => {
    for (const [promised, isPatient] of [
      ["200", true],
      ["1", false],
      ["often", false],
      ["9999999999", false],
    ] as const) {
      await using server = await WireServer.start((request) => ({
        headers: { [HEARTBEAT_HEADER]: promised },
        stream: async (write) => {
          write(eventText(after(request) + 1));
          if (after(request) > 0) return "silence" as const;
          await new Promise((resolve) => setTimeout(resolve, 250));
          write(eventText(2));
          return "silence" as const;
        },
      }));
      const stream = setup(server, { idleMs: 50 });
      const ids = [(await stream.next())?.id, (await stream.next())?.id];
      stream.close();
      assert.deepEqual(ids, ["10", "20"]);
      assert.equal(server.requests.length, isPatient ? 1 : 2, promised);
    }
  });

  it("is given up when nothing ever comes through, and is not when it once did", async () => {
    await using silent = await WireServer.start(() => SILENT);
    await assert.rejects(setup(silent, { firstByteMs: 20 }).next(), {
      name: "RelayError",
      code: "unavailable",
      message: /brought nothing within 20 ms; does a proxy on the way hold streams back/,
    });
    assert.equal(silent.requests.length, 1);
    await using stuck = await WireServer.start((request) => {
      if (stuck.requests.length === 1) return { stream: (write) => writeUpTo(1, "", "reset", write) };
      return stuck.requests.length === 2 ? SILENT : theRest(request);
    });
    const stream = setup(stuck, { firstByteMs: 20 });
    assert.equal((await stream.next())?.id, "10");
    assert.equal((await stream.next())?.id, "20");
    stream.close();
  });

  it("waits longer each time, up to the ceiling, as long as the relay wishes, and shortly after an event", async () => {
    const times: number[] = [];
    await using server = await WireServer.start((request) => {
      times.push(performance.now());
      if (times.length < 6) return "reset";
      if (times.length === 6) return { stream: (write) => writeUpTo(1, "retry: 30\n\n", "reset", write) };
      return theRest(request);
    });
    const stream = setup(server);
    assert.equal((await stream.next())?.id, "10");
    assert.equal((await stream.next())?.id, "20");
    stream.close();
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    for (const [index, wanted] of [8, 16, 32, 64, 64, 30].entries()) {
      assert.ok((gaps[index] ?? 0) >= wanted - 2, `${gaps[index]} ms instead of ${wanted}`);
    }
  });
});

function writeUpTo(count: number, last: string, end: StreamEnd, write: (text: string) => void): StreamEnd {
  write(": hello\n\n");
  for (let number = 1; number <= count; number += 1) write(eventText(number));
  if (last !== "") write(last);
  return end;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
