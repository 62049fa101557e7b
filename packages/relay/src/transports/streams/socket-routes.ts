import { type MailboxSocketQuery, MailboxSocketQuerySchema } from "@a2a-relay/protocol";
import { parserOf } from "../../core/mechanisms/schema-check.ts";
import { param, type SocketRoute } from "../http/route.ts";
import { MailboxSocket } from "./mailbox-socket.ts";
import type { SocketCore } from "./socket-verbs.ts";

const parseQuery = parserOf(MailboxSocketQuerySchema, "query");

/** A mailbox over a socket. */
export function socketRoutes(core: SocketCore): readonly SocketRoute[] {
  return [
    {
      method: "GET",
      path: "/mailbox/{agent_id}/ws",
      tag: "Mailbox",
      summary: "A WebSocket: mail the moment it is there, and sending, leasing and acknowledging over it",
      query: MailboxSocketQuerySchema,
      waits: true,
      answers: { 101: "The socket; every frame is one JSON text" },
      socket: true,
      accept: async (call) => {
        const { quiet = false, ...query }: MailboxSocketQuery = parseQuery(call.query);
        const { principal, signal: stopping } = call;
        const agent = param(call, "agent_id");
        const ended = new AbortController();
        stopping.addEventListener("abort", () => ended.abort(), { once: true });
        // Whoever wants no mail is refused like anybody else who may not have it.
        if (quiet) await core.mailboxes.read(principal, agent, { peek: true, limit: 1 });
        const pages = quiet ? undefined : await core.mailboxes.follow(principal, agent, query, ended);
        const { since = "0", notice: isNotice = false } = query;
        const order = { principal, agent, pages, isNotice, since, ended, stopping };
        return {
          run: (socket, host) => new MailboxSocket(core, order, socket, host).run(),
          [Symbol.dispose]: () => ended.abort(),
        };
      },
    },
  ];
}
