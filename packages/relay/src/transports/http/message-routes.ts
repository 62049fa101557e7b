import {
  type BatchItem,
  BatchRequestSchema,
  type BatchResponse,
  LIMITS,
  MessageInputSchema,
  RelayError,
  type SendResponse,
  SignedMessageSchema,
  toErrorBody,
} from "@a2a-relay/protocol";
import type { MessageService } from "../../core/messages/message-service.ts";
import type { SendOutcome } from "../../core/messages/send-batch.ts";
import type { SignedInbox } from "../../core/messages/signed-inbox.ts";
import type { SendResult } from "../../core/messages/decide-send.ts";
import { statusOf } from "./http-error.ts";
import { type Answer, param, type Route } from "./route.ts";

const tag = "Messages";

/** Messages over HTTP. */
export function messageRoutes(messages: MessageService): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/messages",
      tag,
      summary: "Send a message: answered once it is on disk",
      body: MessageInputSchema,
      answers: {
        201: "Accepted: the complete message and its receipt",
        200: "The same message was accepted before: the same receipt",
      },
      handle: async ({ principal, body }) => answerOf(await messages.send(principal, body)),
    },
    {
      method: "POST",
      path: "/messages/batch",
      tag,
      summary: `Send up to ${LIMITS.batchMessagesMax} messages, each answered in order`,
      body: BatchRequestSchema,
      bodyBytesMax: LIMITS.batchBodyBytesMax,
      answers: { 200: "One result a message, in order, each with its own status" },
      handle: async ({ principal, body }) => ({ body: batchBody(await messages.sendBatch(principal, body)) }),
    },
    {
      method: "GET",
      path: "/messages/{id}",
      tag,
      summary: "A message, its delivery and all its receipts",
      answers: { 200: "The message" },
      handle: async (call) => ({ body: await messages.get(call.principal, param(call, "id")) }),
    },
  ];
}

/** The inbox for signed messages, whose signature names the sender. */
export function inboxRoutes(inbox: SignedInbox): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/api/a2a/inbox",
      tag,
      summary: "Send a message that is signed with a signing key, and needs no other key",
      open: true,
      body: SignedMessageSchema,
      answers: {
        201: "Accepted: the complete message and its receipt",
        200: "The same message was accepted before, under another nonce: the same receipt",
      },
      handle: async ({ body, tenant }) => answerOf(await inbox.receive(body, { transport: "http", tenant })),
    },
  ];
}

function answerOf(sent: SendResult): Answer {
  return { status: sent.created ? 201 : 200, body: sentBody(sent) };
}

export function sentBody({ message, receipt }: SendResult): SendResponse {
  return { message, receipt };
}

export function batchBody(outcomes: readonly SendOutcome[]): BatchResponse {
  return { results: outcomes.map(itemOf) };
}

function itemOf(outcome: SendOutcome): BatchItem {
  if (outcome instanceof RelayError) return { status: statusOf(outcome), ...toErrorBody(outcome) };
  return { status: outcome.created ? 201 : 200, ...sentBody(outcome) };
}
