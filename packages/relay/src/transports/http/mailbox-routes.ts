import {
  AckRequestSchema,
  FailRequestSchema,
  LeaseRequestSchema,
  MailboxReadSchema,
  ReleaseRequestSchema,
  RenewRequestSchema,
} from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import type { Principal } from "../../core/access/principal.ts";
import type { MailboxService } from "../../core/mailboxes/mailbox-service.ts";
import { param, type Route } from "./route.ts";

const tag = "Mailbox";

type MailboxVerb = (principal: Principal, agent: string, input: unknown) => Promise<unknown>;

/** Mailboxes over HTTP. */
export function mailboxRoutes(mailboxes: MailboxService): readonly Route[] {
  const verb = (name: string, summary: string, body: TSchema, answer: string, act: MailboxVerb): Route => ({
    method: "POST",
    path: `/mailbox/{agent_id}/${name}`,
    tag,
    summary,
    body,
    answers: { 200: answer },
    handle: async (call) => ({ body: await act(call.principal, param(call, "agent_id"), call.body) }),
  });
  return [
    {
      method: "GET",
      path: "/mailbox/{agent_id}",
      tag,
      summary: "Read messages, oldest first; they are returned again until they are acknowledged",
      query: MailboxReadSchema,
      waits: true,
      answers: { 200: "Messages, and the cursor behind them" },
      handle: async (call) => {
        const asked = [call.principal, param(call, "agent_id"), call.query, call] as const;
        return { body: await mailboxes.read(...asked) };
      },
    },
    verb(
      "ack",
      "Acknowledge messages as handled",
      AckRequestSchema,
      "How many were acknowledged, and a result for each",
      (...args) => mailboxes.ack(...args),
    ),
    {
      method: "POST",
      path: "/mailbox/{agent_id}/lease",
      tag,
      summary: "Lease messages so that no other worker of this agent gets them",
      body: LeaseRequestSchema,
      waits: true,
      answers: { 200: "Leased messages, each with its lease" },
      handle: async (call) => {
        const asked = [call.principal, param(call, "agent_id"), call.body ?? {}, call] as const;
        return { body: await mailboxes.lease(...asked) };
      },
    },
    verb(
      "renew",
      "Extend leases",
      RenewRequestSchema,
      "How many were renewed, and a result for each",
      (...args) => mailboxes.renew(...args),
    ),
    verb(
      "release",
      "Give leased messages back unfinished",
      ReleaseRequestSchema,
      "How many were released, and a result for each",
      (...args) => mailboxes.release(...args),
    ),
    verb(
      "fail",
      "Give up on a message: it is dead and its sender is told why",
      FailRequestSchema,
      "The delivery",
      (...args) => mailboxes.fail(...args),
    ),
  ];
}
