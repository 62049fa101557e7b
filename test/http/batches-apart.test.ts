import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { type HttpRelay, LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const MESSAGES = 100;

/** A batch of about 150 KiB whose every message says whose it is. */
function batchOf(owner: string): string {
  const messages = Array.from({ length: MESSAGES }, (_, number) => {
    const subject = `${owner} ${number}`;
    return { from: LULU, to: ZHIWEI, subject, body: `${subject} 知微你好 `.repeat(40) };
  });
  return JSON.stringify({ messages });
}

function requestFor(owner: string): string {
  const body = batchOf(owner);
  const head = `POST /messages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function assertOwn(json: string, owner: string): void {
  const { results } = JSON.parse(json) as {
    readonly results: readonly { readonly message?: { readonly subject: string; readonly body: string } }[];
  };
  assert.equal(results.length, MESSAGES);
  for (const [number, { message }] of results.entries()) {
    const subject = `${owner} ${number}`;
    assert.equal(message?.subject, subject);
    assert.equal(message.body, `${subject} 知微你好 `.repeat(40));
  }
}

/** So many answers in a row, each as its body. */
async function answersFrom(socket: Socket, count: number): Promise<readonly string[]> {
  const bodies: string[] = [];
  let left = Buffer.alloc(0);
  for await (const chunk of socket) {
    left = Buffer.concat([left, chunk as Buffer]);
    for (;;) {
      const headEnd = left.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(left.toString("latin1", 0, headEnd))?.[1]);
      if (headEnd === -1 || left.length < headEnd + 4 + length) break;
      bodies.push(left.toString("utf8", headEnd + 4, headEnd + 4 + length));
      left = left.subarray(headEnd + 4 + length);
    }
    if (bodies.length >= count) break;
  }
  return bodies;
}

describe("batches at the same time", () => {
  let relay: HttpRelay;
  before(async () => {
    relay = await openHttpRelay();
  });
  after(() => relay[Symbol.asyncDispose]());

  const send = async (owner: string): Promise<void> => {
    const { status, text } = await relay.post("/messages/batch", batchOf(owner));
    assert.equal(status, 200);
    assertOwn(text, owner);
  };

  it("are each answered with their own messages", async () => {
    await Promise.all(Array.from({ length: 40 }, (_, number) => send(`露露${number}`)));
  });

  it("do not get into the answers of one that reads late", async () => {
    const late = connect({ host: "127.0.0.1", port: relay.port });
    const count = 80;
    const owners = Array.from({ length: count }, (_, number) => `late ${number}`);
    late.write(owners.map(requestFor).join(""));
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 10 }, (_, number) => send(`busy ${round} ${number}`)));
    }
    const answers = await answersFrom(late, count);
    for (const [index, owner] of owners.entries()) assertOwn(answers[index] ?? "", owner);
    late.destroy();
  });

  it("survive clients that leave in the middle of a body or of an answer", async () => {
    const leavers = Array.from({ length: 20 }, async (_, number) => {
      const socket = connect({ host: "127.0.0.1", port: relay.port });
      socket.on("error", () => undefined);
      const request = requestFor(`gone ${number}`);
      socket.write(number % 2 === 0 ? request : request.slice(0, (request.length * (number + 1)) / 22));
      // Each leaves at another moment, counted in requests.
      for (let calls = 0; calls < number; calls += 1) await relay.get("/health");
      socket.destroy();
    });
    await Promise.all([...leavers, ...Array.from({ length: 30 }, (_, number) => send(`stays ${number}`))]);
    await send("知微");
  });
});
