import { Type } from "typebox";
import {
  AckResponseSchema,
  FailResponseSchema,
  LeaseResponseSchema,
  MailboxItemSchema,
  MailboxResponseSchema,
  ReleaseResponseSchema,
  RenewResponseSchema,
} from "../wire/answers.ts";
import {
  AckRequestSchema,
  FailRequestSchema,
  LeaseRequestSchema,
  MailboxReadSchema,
  ReleaseRequestSchema,
  RenewRequestSchema,
} from "../wire/requests.ts";
import { MailboxNoticeSchema, MailboxSocketQuerySchema, MailboxStreamQuerySchema } from "../wire/stream.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries } from "./operation.ts";
import { AGENT_ERRORS, TextSchema, WORK_ERRORS } from "./shared.ts";

const tag = "Mailbox";
const params = { agent_id: EXAMPLE_IDS.agent };
const lease = { message_id: EXAMPLE_IDS.message, lease_id: EXAMPLE_IDS.lease };

const settling = { method: "POST", tag, verbs: ["mailbox.settle"] } as const;

export const mailboxes = {
  read: {
    method: "GET",
    path: "/mailbox/{agent_id}",
    tag,
    summary: "Read messages, oldest first; they are returned again until they are acknowledged",
    verbs: ["mailbox.read"],
    query: MailboxReadSchema,
    waits: true,
    answers: { 200: { description: "Messages, and the cursor behind them", schema: MailboxResponseSchema } },
    errors: AGENT_ERRORS,
    repeat: "always",
    paging: { items: "messages", next: "cursor", query: "since" },
    example: { params, query: { limit: 10, peek: true } },
  },
  stream: {
    method: "GET",
    path: "/mailbox/{agent_id}/stream",
    tag,
    summary: "Messages as server-sent events, as soon as they arrive",
    verbs: ["mailbox.read"],
    query: MailboxStreamQuerySchema,
    waits: true,
    streams: "always",
    event: Type.Union([MailboxItemSchema, MailboxNoticeSchema]),
    answers: {
      200: {
        description: "Events named message, or notice; the id of each is the cursor behind it",
        schema: TextSchema,
      },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params, query: { peek: true } },
  },
  socket: {
    method: "GET",
    path: "/mailbox/{agent_id}/ws",
    tag,
    summary: "A WebSocket: messages as soon as they arrive, and sending, leasing and acknowledging over it",
    verbs: ["mailbox.read"],
    query: MailboxSocketQuerySchema,
    waits: true,
    answers: { 101: { description: "The socket; every frame is one JSON text" } },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params, query: { quiet: true } },
  },
  acknowledge: {
    ...settling,
    path: "/mailbox/{agent_id}/ack",
    summary: "Acknowledge messages as handled",
    body: AckRequestSchema,
    answers: {
      200: { description: "How many were acknowledged, and a result for each", schema: AckResponseSchema },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params, body: { leases: [lease] } },
  },
  lease: {
    ...settling,
    path: "/mailbox/{agent_id}/lease",
    summary: "Lease messages so that no other worker of this agent gets them",
    body: LeaseRequestSchema,
    waits: true,
    answers: { 200: { description: "Leased messages, each with its lease", schema: LeaseResponseSchema } },
    errors: AGENT_ERRORS,
    // A second request would leave the messages of the first under a lease that no worker knows.
    repeat: "if_not_done",
    example: { params, body: { max: 1, lease_ms: 60_000, worker: "worker-1" } },
  },
  renew: {
    ...settling,
    path: "/mailbox/{agent_id}/renew",
    summary: "Extend leases",
    body: RenewRequestSchema,
    answers: {
      200: { description: "How many were renewed, and a result for each", schema: RenewResponseSchema },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params, body: { ...lease, lease_ms: 60_000 } },
  },
  release: {
    ...settling,
    path: "/mailbox/{agent_id}/release",
    summary: "Give leased messages back unfinished",
    body: ReleaseRequestSchema,
    answers: {
      200: { description: "How many were released, and a result for each", schema: ReleaseResponseSchema },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params, body: { leases: [lease] } },
  },
  fail: {
    ...settling,
    path: "/mailbox/{agent_id}/fail",
    summary: "Give up on a message: it is dead and its sender is told why",
    body: FailRequestSchema,
    answers: { 200: { description: "The delivery", schema: FailResponseSchema } },
    errors: [...AGENT_ERRORS, ...WORK_ERRORS],
    repeat: "always",
    example: { params, body: { ...lease, reason: "the attachment cannot be read" } },
  },
} as const satisfies OperationEntries;
