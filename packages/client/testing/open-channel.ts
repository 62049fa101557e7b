import type { MailboxItem, SocketFrame } from "@a2a-relay/protocol";
import { HttpExchange } from "../src/http/http-exchange.ts";
import { fillClientOptions, type RelayClientOptions } from "../src/http/relay-client-options.ts";
import { SocketChannel, type SocketChannelParts, type SocketOptions } from "../src/live/socket-channel.ts";
import type { WireAsk, WireConnection, WireSocket } from "./wire-socket.ts";

export const AGENT = "知微@demo";

export function answer({ id, socket }: WireAsk, body: unknown): void {
  socket.say({ type: "answer", id, body });
}

/** Page n has the cursor 10 n. */
export function page(number: number): SocketFrame {
  const messages = [{ id: `m${number}` } as MailboxItem];
  return { type: "mail", messages, cursor: String(number * 10) };
}

export function pagesAfter({ url }: WireConnection): number {
  return Number(url.searchParams.get("since") ?? 0) / 10;
}

export function isQuiet({ url }: WireConnection): boolean {
  return url.searchParams.get("quiet") === "true";
}

/** Without delays, unless a test is about them. */
export async function openChannel(
  wire: WireSocket,
  options: SocketOptions = {},
  more: Partial<RelayClientOptions & SocketChannelParts> = {},
): Promise<SocketChannel> {
  const filled = fillClientOptions({ url: wire.url, retryDelayMs: 0, ...more });
  const parts = {
    exchange: new HttpExchange(filled),
    options: filled,
    agentId: AGENT,
    random: () => 0,
    ...more,
  };
  return SocketChannel.open({ ...parts, options: filled }, options);
}

/** The cursors of the next pages. */
export async function take(channel: SocketChannel, count: number): Promise<readonly string[]> {
  const cursors: string[] = [];
  for await (const frame of channel.frames()) {
    cursors.push(frame.cursor);
    if (cursors.length === count) break;
  }
  return cursors;
}
