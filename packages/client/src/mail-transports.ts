import { BestMailSource } from "./best-mail-source.ts";
import { HttpExchange } from "./http-exchange.ts";
import type { InboxSource, InboxTransport } from "./mail-source.ts";
import { PollMailSource } from "./poll-mail-source.ts";
import type { InboxTransportChoice } from "./relay-agent-options.ts";
import type { FilledClientOptions } from "./relay-client-options.ts";
import type { RelayClient } from "./relay-client.ts";
import { SocketMailSource } from "./socket-mail-source.ts";
import { StreamMailSource } from "./stream-mail-source.ts";

export interface MailSourceParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly options: FilledClientOptions;
}

type TransportName = Exclude<InboxTransportChoice, "auto">;

const BEST_FIRST: readonly TransportName[] = ["websocket", "sse", "poll"];

/** The agent's mail, in the way that was chosen. */
export function createMailSource(parts: MailSourceParts, choice: InboxTransportChoice): InboxSource {
  const { client, agentId, options } = parts;
  const exchange = new HttpExchange(options);
  const delays = { firstMs: options.retryDelayMs, maxMs: options.retryDelayMsMax };
  const transports: Readonly<Record<TransportName, InboxTransport>> = {
    websocket: { open: (call) => SocketMailSource.open({ exchange, options, agentId }, call) },
    sse: { open: (call) => StreamMailSource.open({ client, exchange, agentId, delays }, call) },
    poll: new PollMailSource(client, agentId),
  };
  const names = choice === "auto" ? BEST_FIRST : [choice];
  return new BestMailSource(names.map((name) => transports[name]));
}
