import type { SocketVerb } from "@a2a-relay/protocol";
import type { Principal } from "../../core/access/principal.ts";
import type { Waiting } from "../../core/environment/waiting.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import { batchJson, sentJson } from "../http/message-routes.ts";
import { statusOf } from "../http/http-error.ts";

/** Who asks over a socket, and for whose mailbox it was opened. */
export interface SocketCaller {
  readonly principal: Principal;
  readonly agent: string;
}

export type SocketCore = Pick<RelayCore, "guard" | "mailboxes" | "messages">;

type Act = (core: SocketCore, caller: SocketCaller, input: unknown, waiting: Waiting) => Promise<string>;

const inMailbox =
  (act: (core: SocketCore, ...asked: [Principal, string, unknown]) => Promise<unknown>): Act =>
  async (core, { principal, agent }, input) =>
    JSON.stringify(await act(core, principal, agent, input));

/** What each verb does, and the body of its route as JSON. */
export const SOCKET_ACTS = {
  send: async ({ messages }, { principal }, input) => sentJson(await messages.send(principal, input)),
  send_batch: async ({ messages }, { principal }, input) =>
    batchJson(await messages.sendBatch(principal, input, statusOf)),
  lease: async ({ mailboxes }, { principal, agent }, input, waiting) =>
    JSON.stringify(await mailboxes.lease(principal, agent, input ?? {}, waiting)),
  renew: inMailbox(({ mailboxes }, ...asked) => mailboxes.renew(...asked)),
  release: inMailbox(({ mailboxes }, ...asked) => mailboxes.release(...asked)),
  ack: inMailbox(({ mailboxes }, ...asked) => mailboxes.ack(...asked)),
  fail: inMailbox(({ mailboxes }, ...asked) => mailboxes.fail(...asked)),
} as const satisfies Record<SocketVerb, Act>;
