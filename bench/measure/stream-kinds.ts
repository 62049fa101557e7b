import type { StreamOpener } from "../load/mailbox-stream.ts";
import { SocketStream } from "../load/socket-stream.ts";
import { SseStream } from "../load/sse-stream.ts";

/** The two streams that push messages to a reader. */
export const STREAM_KINDS: readonly { readonly name: string; readonly open: StreamOpener }[] = [
  { name: "SSE", open: (address, listener) => new SseStream(address, listener) },
  { name: "WebSocket", open: (address, listener) => new SocketStream(address, listener) },
];
