import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SOCKET_CLOSE } from "@a2a-relay/protocol";
import { answer, isQuiet, openChannel, page, pagesAfter, take } from "../../testing/open-channel.ts";
import { type WireAsk, type WireConnection, WireSocket } from "../../testing/wire-socket.ts";

const PAGES = 5;

describe("frames of an inbox over a socket", () => {
  const goodbyes: readonly (readonly [name: string, (cut: number) => [code: number, reason: string]])[] = [
    ["as too slow", (cut) => [SOCKET_CLOSE.slow, String(cut * 10)]],
    ["because the relay could not go on", () => [SOCKET_CLOSE.internal, "the database is busy"]],
    ["because the relay stops", () => [SOCKET_CLOSE.stopping, "the relay is stopping"]],
  ];
  for (const [name, goodbye] of goodbyes) {
    it(`goes on without gap or repetition when it is closed ${name}, at whatever index`, async () => {
      for (let cut = 0; cut <= PAGES; cut += 1) {
        await using wire = await WireSocket.start({
          onOpen: (socket) => {
            const isFirst = wire.sockets.length === 1;
            for (let number = pagesAfter(socket) + 1; number <= (isFirst ? cut : PAGES); number += 1) {
              socket.say(page(number));
            }
            if (isFirst) socket.close(...goodbye(cut));
          },
        });
        const channel = await openChannel(wire);
        assert.deepEqual(await take(channel, PAGES), ["10", "20", "30", "40", "50"], `cut at ${cut}`);
        assert.equal(channel.cursor, "50");
        await channel.close();
      }
    });
  }

  it("does not pile up for a reader that is slow, and still comes whole", async (test) => {
    const count = 60;
    await using wire = await WireSocket.start({
      onOpen: (socket) => {
        for (let number = pagesAfter(socket) + 1; number <= count; number += 1) socket.say(page(number));
      },
      onAsk: (ask) => answer(ask, { acknowledged: 0, results: [] }),
    });
    const channel = await openChannel(wire);
    test.after(() => channel.close());
    // By its answer all frames before it have come.
    await channel.ack({ message_ids: [] });
    assert.equal(channel.cursor, "160");
    const cursors = await take(channel, count);
    assert.deepEqual(
      cursors,
      Array.from({ length: count }, (_, index) => String((index + 1) * 10)),
    );
  });

  it("is not sent again and again to a reader that is slow, whose requests go on undisturbed", async (test) => {
    const count = 400;
    let sent = 0;
    const sendRest = (socket: WireConnection, number: number): void => {
      if (!socket.isOpen || number > count) return;
      sent += 1;
      socket.say(page(number));
      setImmediate(() => sendRest(socket, number + 1));
    };
    const leasing = Promise.withResolvers<WireAsk>();
    await using wire = await WireSocket.start({
      onOpen: (socket) => isQuiet(socket) || sendRest(socket, pagesAfter(socket) + 1),
      onAsk: (ask) =>
        ask.verb === "lease" ? leasing.resolve(ask) : answer(ask, { acknowledged: 1, results: [] }),
    });
    const channel = await openChannel(wire, {}, { retries: 0 });
    test.after(() => channel.close());
    const lease = channel.lease({ wait_ms: 60_000 });
    const cursors: string[] = [];
    for await (const { cursor } of channel.frames()) {
      cursors.push(cursor);
      if (cursors.length === 50) answer(await leasing.promise, { messages: [] });
      // As long as this takes, several pages come.
      await channel.ack({ message_ids: [cursor] });
      if (cursors.length === count) break;
    }
    assert.deepEqual(
      cursors,
      Array.from({ length: count }, (_, index) => String((index + 1) * 10)),
    );
    assert.deepEqual((await lease).messages, []);
    // Of the first socket all of it at most, since a lease was under way; of the others little beside what was kept.
    assert.ok(sent <= 3 * count, `sent ${sent} pages for ${count}`);
    const spoken = wire.sockets.filter((socket) => wire.asked.some((ask) => ask.socket === socket));
    assert.deepEqual(spoken.map(isQuiet), [false, true]);
  });

  it("does not come at all while there is no room for it", async (test) => {
    await using wire = await WireSocket.start({
      onOpen: (socket) => {
        if (isQuiet(socket)) return;
        for (let number = pagesAfter(socket) + 1; number <= 20; number += 1) socket.say(page(number));
      },
      onAsk: (ask) => answer(ask, { acknowledged: 0, results: [] }),
    });
    const channel = await openChannel(wire);
    test.after(() => channel.close());
    while (wire.sockets.length < 2) await channel.ack({ message_ids: [] });
    await channel.ack({ message_ids: [] });
    assert.deepEqual(wire.sockets.map(isQuiet), [false, true]);
    assert.equal(channel.cursor, "160");
    assert.equal((await take(channel, 20)).at(-1), "200");
    assert.deepEqual(
      wire.sockets.map(({ url }) => url.search),
      ["", "?quiet=true&since=160", "?since=160"],
    );
  });

  it("ends with what the relay says to the socket that brings it", async (test) => {
    await using wire = await WireSocket.start({
      onOpen: (socket) => {
        if (wire.sockets.length === 1)
          for (let number = 1; number <= 20; number += 1) socket.say(page(number));
        else if (!isQuiet(socket)) socket.close(SOCKET_CLOSE.refused, "no more");
      },
    });
    const channel = await openChannel(wire);
    test.after(() => channel.close());
    await assert.rejects(take(channel, 20), { code: "permission_denied", message: "no more" });
  });

  it("ends when the channel is closed", async (test) => {
    await using wire = await WireSocket.start({ onOpen: (socket) => socket.say(page(1)) });
    const channel = await openChannel(wire);
    test.after(() => channel.close());
    const cursors: string[] = [];
    for await (const { cursor } of channel.frames()) {
      cursors.push(cursor);
      void channel.close();
    }
    assert.deepEqual(cursors, ["10"]);
    await assert.rejects(channel.ack({ message_ids: ["m"] }), {
      code: "unavailable",
      message: "this socket was closed",
    });
  });
});
