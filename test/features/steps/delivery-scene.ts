import assert from "node:assert/strict";
import type {
  InboxFrame,
  SignedMessage,
  SocketChannel,
  StreamedItem,
  StreamedTaskEvent,
} from "@a2a-relay/client";
import type { BreakableLine } from "../../support/breakable-line.ts";
import type { Follower } from "../../support/follower.ts";
import type { PushReceiver } from "../../support/push-receiver.ts";

/** An agent's socket, and what came over it. */
export interface OpenSocket {
  readonly channel: SocketChannel;
  readonly frames: Follower<InboxFrame>;
}

/** What a scenario knows of delivery: who listens, who is called, and what signs. */
export class DeliveryScene {
  /** Who listens to its mailbox, by its short name. */
  readonly listeners = new Map<string, Follower<StreamedItem>>();
  readonly sockets = new Map<string, OpenSocket>();
  /** What listeners reach the relay over, also after it has moved. */
  line: BreakableLine | undefined;
  taskEvents: Follower<StreamedTaskEvent> | undefined;
  pushSecret = "";
  signing: { readonly keyId: string; readonly secret: string } | undefined;
  posted: SignedMessage | undefined;
  /** Codes of refusals, where there is more than one. */
  refusals: readonly (string | undefined)[] = [];
  #receiver: PushReceiver | undefined;

  get receiver(): PushReceiver {
    assert.ok(this.#receiver, "no webhook is called");
    return this.#receiver;
  }

  set receiver(receiver: PushReceiver) {
    this.#receiver = receiver;
  }

  listener(name: string): Follower<StreamedItem> {
    const listener = this.listeners.get(name);
    assert.ok(listener, `${name} does not listen`);
    return listener;
  }

  socket(name: string): OpenSocket {
    const socket = this.sockets.get(name);
    assert.ok(socket, `${name} has no socket`);
    return socket;
  }
}
