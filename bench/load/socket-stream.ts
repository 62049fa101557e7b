import { upgradeRequest } from "./http-request.ts";
import type { InboxItem } from "./mailbox-item.ts";
import { MailboxStream, type StreamAddress, type StreamListener, streamPath } from "./mailbox-stream.ts";
import { clientFrame, type Frame, FrameReader, OPCODES, requestFrame } from "./socket-frames.ts";

export interface SocketListener extends StreamListener {
  /** The body of the answer to what was asked under this id. A refusal ends the socket. */
  onAnswer?(id: string, body: unknown): void;
}

type ServerFrame =
  | { readonly type: "mail"; readonly messages: readonly InboxItem[]; readonly cursor: string }
  | { readonly type: "answer"; readonly id: string; readonly body: unknown; readonly error?: undefined }
  | { readonly type: "answer" | "error"; readonly error: { readonly message: string } };

const HEAD_END = Buffer.from("\r\n\r\n");
const SWITCHED = "HTTP/1.1 101 ";

/** Messages over a WebSocket, and requests over the same one. */
export class SocketStream extends MailboxStream {
  readonly #frames = new FrameReader();
  readonly #listener: SocketListener;
  /** The head of the answer until it is complete. */
  #head: Buffer | undefined = Buffer.alloc(0);

  constructor(address: StreamAddress, listener: SocketListener) {
    super(address, upgradeRequest(streamPath("ws", address)), listener);
    this.#listener = listener;
  }

  request(id: string, verb: string, input: unknown): void {
    this.send(requestFrame(id, verb, input));
  }

  /** A request that was made into a frame before. */
  send(frame: Buffer): void {
    this.write(frame);
  }

  protected override read(bytes: Buffer, at: number): void {
    const rest = this.#head === undefined ? bytes : this.#readHead(Buffer.concat([this.#head, bytes]));
    if (rest === undefined) return;
    for (const frame of this.#frames.push(rest)) this.#take(frame, at);
  }

  /** What comes after the head; undefined until it is complete. */
  #readHead(bytes: Buffer): Buffer | undefined {
    this.#head = bytes;
    const end = bytes.indexOf(HEAD_END);
    if (end === -1) return undefined;
    const head = bytes.toString("latin1", 0, end);
    if (!head.startsWith(SWITCHED)) throw new Error(`a socket was answered ${head.split("\r\n", 1)[0]}`);
    this.#head = undefined;
    this.#listener.onOpen();
    return bytes.subarray(end + HEAD_END.length);
  }

  #take({ opcode, payload }: Frame, at: number): void {
    if (opcode === OPCODES.ping) this.write(clientFrame(OPCODES.pong, payload));
    if (opcode === OPCODES.close)
      throw new Error(`the server closed the socket: ${payload.toString("utf8", 2)}`);
    if (opcode !== OPCODES.text) return;
    const frame = JSON.parse(payload.toString("utf8")) as ServerFrame;
    if ("error" in frame && frame.error !== undefined) throw new Error(frame.error.message);
    if (frame.type === "mail") this.#listener.onMessages(frame.messages, frame.cursor, at);
    else if (frame.type === "answer") this.#listener.onAnswer?.(frame.id, frame.body);
  }
}
