import type { SocketVerb } from "@a2a-relay/protocol";
import type { Principal } from "../../core/access/principal.ts";
import { mailJson } from "../../core/mailboxes/delivery-view.ts";
import type { Taking } from "../../core/mailboxes/mailbox-service.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import { leasedJson } from "../http/mailbox-routes.ts";
import { batchJson, sentJson } from "../http/message-routes.ts";
import { statusOf } from "../http/http-error.ts";

/** Who asks over a socket, and for whose mailbox it was opened. */
export interface SocketCaller {
  readonly principal: Principal;
  readonly agent: string;
}

export type SocketCore = Pick<RelayCore, "guard" | "mailboxes" | "messages">;

/** What came of a request. */
export interface Acted {
  /** The body of the verb's route as JSON. */
  readonly body: string;
  /** Takes back what nobody would know of who does not get the answer. */
  readonly undo?: () => Promise<unknown>;
}

type Act = (core: SocketCore, caller: SocketCaller, input: unknown, taking: Taking) => Promise<Acted>;

const inMailbox =
  (act: (core: SocketCore, ...asked: [Principal, string, unknown]) => Promise<unknown>): Act =>
  async (core, { principal, agent }, input) => ({
    body: JSON.stringify(await act(core, principal, agent, input)),
  });

/** What each verb does. */
export const SOCKET_ACTS = {
  send: async ({ messages }, { principal }, input) => ({
    body: sentJson(await messages.send(principal, input)),
  }),
  send_batch: async ({ messages }, { principal }, input) => ({
    body: await messages.sendBatch(principal, { read: () => input, write: batchJson, statusOf }),
  }),
  lease: async ({ mailboxes }, { principal, agent }, input, taking) => {
    const leased = await mailboxes.leaseAs((mail) => mail, principal, agent, input ?? {}, taking);
    const leases = leased.map(({ delivery }) => ({
      message_id: delivery.messageId,
      lease_id: delivery.leaseId,
    }));
    const body = leasedJson(leased.map(mailJson));
    return leases.length === 0
      ? { body }
      : { body, undo: () => mailboxes.release(principal, agent, { leases }) };
  },
  renew: inMailbox(({ mailboxes }, ...asked) => mailboxes.renew(...asked)),
  release: inMailbox(({ mailboxes }, ...asked) => mailboxes.release(...asked)),
  ack: inMailbox(({ mailboxes }, ...asked) => mailboxes.ack(...asked)),
  fail: inMailbox(({ mailboxes }, ...asked) => mailboxes.fail(...asked)),
} as const satisfies Record<SocketVerb, Act>;
