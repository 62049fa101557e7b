/** The kinds of frames that the load meets. */
export const OPCODES = { text: 0x1, close: 0x8, ping: 0x9, pong: 0xa } as const;

export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

const FINAL = 0x80;
const MASKED = 0x80;
const OPCODE_BITS = 0x0f;
const LENGTH_BITS = 0x7f;
/** Marks a length that follows, in two bytes or in eight. */
const LENGTH_IN_2 = 126;
const LENGTH_IN_8 = 127;
const LENGTH_IN_2_MAX = 0xffff;
/** Always the same, so that frames can be made once. Not zeros, with which a server may spare itself the work. */
const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/** A frame as a client sends it: masked. */
export function clientFrame(opcode: number, payload: Buffer): Buffer {
  const header = headerOf(opcode, payload.length);
  const masked = Buffer.allocUnsafe(payload.length);
  for (let index = 0; index < payload.length; index += 1) {
    masked[index] = (payload[index] ?? 0) ^ (MASK[index % MASK.length] ?? 0);
  }
  return Buffer.concat([header, MASK, masked]);
}

export function requestFrame(id: string, verb: string, input: unknown): Buffer {
  return clientFrame(OPCODES.text, Buffer.from(JSON.stringify({ id, verb, input })));
}

function headerOf(opcode: number, length: number): Buffer {
  const first = FINAL | opcode;
  if (length < LENGTH_IN_2) return Buffer.from([first, MASKED | length]);
  if (length <= LENGTH_IN_2_MAX) {
    const header = Buffer.from([first, MASKED | LENGTH_IN_2, 0, 0]);
    header.writeUInt16BE(length, 2);
    return header;
  }
  const header = Buffer.from([first, MASKED | LENGTH_IN_8, 0, 0, 0, 0, 0, 0, 0, 0]);
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

/** Takes the frames of a server out of its bytes, in pieces of any size. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** As far as is known: of its header, and then of the whole frame. */
  #bytesWanted = 2;

  /** The frames that end within this piece. */
  push(bytes: Buffer): readonly Frame[] {
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    // A long frame comes in many pieces, which are put together once.
    if (this.#bytes < this.#bytesWanted) return [];
    const all = this.#chunks.length === 1 ? bytes : Buffer.concat(this.#chunks);
    const frames: Frame[] = [];
    let start = 0;
    for (;;) {
      const left = all.subarray(start);
      const { payloadStart, end } = extentOf(left);
      this.#bytesWanted = end;
      if (left.length < end) break;
      frames.push({ opcode: opcodeOf(left), payload: left.subarray(payloadStart, end) });
      start += end;
    }
    this.#chunks = start === all.length ? [] : [all.subarray(start)];
    this.#bytes = all.length - start;
    return frames;
  }
}

/** Where the payload begins and the frame ends, or as many bytes as it takes to tell. */
function extentOf(bytes: Buffer): { readonly payloadStart: number; readonly end: number } {
  const length = (bytes[1] ?? 0) & LENGTH_BITS;
  if (bytes.length < 2) return { payloadStart: 2, end: 2 };
  if (length < LENGTH_IN_2) return { payloadStart: 2, end: 2 + length };
  const payloadStart = length === LENGTH_IN_2 ? 4 : 10;
  if (bytes.length < payloadStart) return { payloadStart, end: payloadStart };
  const wholeLength = length === LENGTH_IN_2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  return { payloadStart, end: payloadStart + wholeLength };
}

function opcodeOf(bytes: Buffer): number {
  const first = bytes[0] ?? 0;
  if ((first & FINAL) === 0)
    throw new Error("the server cut a frame into fragments, which the load cannot read");
  return first & OPCODE_BITS;
}
