import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A name server on this machine with the answers of a test; it ignores all other names. */
export interface NameServer extends AsyncDisposable {
  /** As `address:port`. */
  readonly server: string;
  /** The name of every query. */
  readonly asked: readonly string[];
  /** Resolves once so many queries arrived. */
  questions(count: number): Promise<void>;
}

const HEADER_BYTES = 12;
const A = 1;
const ANSWER_FLAGS = 0x8180;
const NO_SUCH_NAME = 3;

/** By name: its IPv4 address, "" where it has none at all, or null where there is no such name. */
export async function openNameServer(answers: Readonly<Record<string, string | null>>): Promise<NameServer> {
  const asked: string[] = [];
  const socket = createSocket("udp4", (question, { port, address }) => {
    const { name, type, end } = readQuestion(question);
    asked.push(name);
    socket.emit("asked");
    const answer = answers[name];
    if (answer === undefined) return;
    const record = type === A && answer ? recordOf(answer) : Buffer.alloc(0);
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt16BE(question.readUInt16BE(0), 0);
    header.writeUInt16BE(ANSWER_FLAGS | (answer === null ? NO_SUCH_NAME : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(record.length > 0 ? 1 : 0, 6);
    socket.send(Buffer.concat([header, question.subarray(HEADER_BYTES, end), record]), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    server: `127.0.0.1:${socket.address().port}`,
    asked,
    questions: async (count) => {
      while (asked.length < count) await once(socket, "asked");
    },
    [Symbol.asyncDispose]: async () => {
      socket.close();
      await once(socket, "close");
    },
  };
}

function readQuestion(question: Buffer): {
  readonly name: string;
  readonly type: number;
  readonly end: number;
} {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = question.readUInt8(at); length > 0; length = question.readUInt8(at)) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: question.readUInt16BE(at + 1), end: at + 5 };
}

/** An A record for the queried name, with a TTL of one minute. */
function recordOf(address: string): Buffer {
  const bytes = address.split(".").map(Number);
  return Buffer.from([0xc0, HEADER_BYTES, 0, A, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]);
}
