import {
  AckRequestSchema,
  FailRequestSchema,
  LeaseRequestSchema,
  MailboxReadSchema,
  ReleaseRequestSchema,
  RenewRequestSchema,
} from "@a2a-relay/protocol";
import type { MailboxService } from "../../core/mailboxes/mailbox-service.ts";
import { param, type Route } from "./route.ts";

const tag = "Mailbox";

/** Taking mail over HTTP. */
export function mailboxRoutes(mailboxes: MailboxService): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/mailbox/{agent_id}",
      tag,
      summary: "Read mail, oldest first; it is returned again until it is acknowledged",
      query: MailboxReadSchema,
      waits: true,
      answers: { 200: "Mail, and the cursor behind it" },
      handle: async (call) => ({
        body: await mailboxes.read(call.principal, param(call, "agent_id"), call.query, call),
      }),
    },
    {
      method: "POST",
      path: "/mailbox/{agent_id}/ack",
      tag,
      summary: "Acknowledge mail as dealt with",
      body: AckRequestSchema,
      answers: { 200: "How many were acknowledged, and a result for each" },
      handle: async (call) => ({
        body: await mailboxes.ack(call.principal, param(call, "agent_id"), call.body),
      }),
    },
    {
      method: "POST",
      path: "/mailbox/{agent_id}/lease",
      tag,
      summary: "Take mail so that no other worker of this agent gets it",
      body: LeaseRequestSchema,
      waits: true,
      answers: { 200: "Leased mail, each item with its lease" },
      handle: async (call) => ({
        body: await mailboxes.lease(call.principal, param(call, "agent_id"), call.body ?? {}, call),
      }),
    },
    {
      method: "POST",
      path: "/mailbox/{agent_id}/renew",
      tag,
      summary: "Extend leases",
      body: RenewRequestSchema,
      answers: { 200: "How many were renewed, and a result for each" },
      handle: async (call) => ({
        body: await mailboxes.renew(call.principal, param(call, "agent_id"), call.body),
      }),
    },
    {
      method: "POST",
      path: "/mailbox/{agent_id}/release",
      tag,
      summary: "Give leased mail back unfinished",
      body: ReleaseRequestSchema,
      answers: { 200: "How many were released, and a result for each" },
      handle: async (call) => ({
        body: await mailboxes.release(call.principal, param(call, "agent_id"), call.body),
      }),
    },
    {
      method: "POST",
      path: "/mailbox/{agent_id}/fail",
      tag,
      summary: "Give up on a message: it is dead and its sender is told why",
      body: FailRequestSchema,
      answers: { 200: "The delivery as it stands" },
      handle: async (call) => ({
        body: await mailboxes.fail(call.principal, param(call, "agent_id"), call.body),
      }),
    },
  ];
}
