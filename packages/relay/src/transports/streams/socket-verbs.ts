import type { SocketVerb } from "@a2a-relay/protocol";
import type { Principal } from "../../core/access/principal.ts";
import type { LeaseOptions } from "../../core/mailboxes/mailbox-service.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import { batchBody, sentBody } from "../http/message-routes.ts";

/** The caller of a socket, and the agent whose mailbox it opened. */
export interface SocketCaller {
  readonly principal: Principal;
  readonly agent: string;
}

export type SocketCore = Pick<RelayCore, "guard" | "mailboxes" | "messages">;

/** The result of a request. */
export interface Acted {
  /** As the verb's route answers over HTTP. */
  readonly body: unknown;
  /** Reverts the request when its answer cannot be sent. */
  readonly undo?: () => Promise<unknown>;
}

type Act = (core: SocketCore, caller: SocketCaller, input: unknown, taking: LeaseOptions) => Promise<Acted>;

const inMailbox =
  (act: (core: SocketCore, ...asked: [Principal, string, unknown]) => Promise<unknown>): Act =>
  async (core, { principal, agent }, input) => ({ body: await act(core, principal, agent, input) });

export const SOCKET_ACTS = {
  send: async ({ messages }, { principal }, input) => ({
    body: sentBody(await messages.send(principal, input)),
  }),
  send_batch: async ({ messages }, { principal }, input) => ({
    body: batchBody(await messages.sendBatch(principal, input)),
  }),
  lease: async ({ mailboxes }, { principal, agent }, input, taking) => {
    const body = await mailboxes.lease(principal, agent, input ?? {}, taking);
    const leases = body.messages.map(({ message_id, lease }) => ({ message_id, lease_id: lease.id }));
    return leases.length === 0
      ? { body }
      : { body, undo: () => mailboxes.release(principal, agent, { leases }) };
  },
  renew: inMailbox(({ mailboxes }, ...asked) => mailboxes.renew(...asked)),
  release: inMailbox(({ mailboxes }, ...asked) => mailboxes.release(...asked)),
  ack: inMailbox(({ mailboxes }, ...asked) => mailboxes.ack(...asked)),
  fail: inMailbox(({ mailboxes }, ...asked) => mailboxes.fail(...asked)),
} as const satisfies Record<SocketVerb, Act>;
