import type { WebSocket } from "@fastify/websocket";
import type { Pulses } from "./pulses.ts";
import type { StreamMeter } from "./stream-meter.ts";

/** What a socket needs of the server it runs in. */
export interface SocketHost {
  readonly meter: StreamMeter;
  readonly pulses: Pulses;
  readonly heartbeatMs: number;
  /** How long a reader may take for what it was sent. */
  readonly stallMs: number;
  /** Where failures go that the other side must not see. */
  onFailure(reason: unknown): void;
}

/** A caller that may have its socket. Disposed of when it never gets one. */
export interface SocketSession extends Disposable {
  run(socket: WebSocket, host: SocketHost): void;
}
