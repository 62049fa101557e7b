import {
  type BatchItem,
  BatchRequestSchema,
  type BatchResponse,
  LIMITS,
  MessageInputSchema,
  RelayError,
  type SendResponse,
  toErrorBody,
} from "@a2a-relay/protocol";
import type { MessageService } from "../../core/messages/message-service.ts";
import type { SendOutcome } from "../../core/messages/send-batch.ts";
import type { SendResult } from "../../core/messages/decide-send.ts";
import { statusOf } from "./http-error.ts";
import { jsonOfBody } from "./read-body.ts";
import { Piece } from "./reused-memory.ts";
import { type Answer, param, type Route } from "./route.ts";

const tag = "Messages";

/** Sending, and what became of it. */
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
      parsesItself: true,
      answers: { 200: "One result a message, in order, each with its own status" },
      handle: async ({ principal, body }) => ({
        body: batchBody(await messages.sendBatch(principal, parsed(body))),
      }),
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

export function answerOf(sent: SendResult): Answer {
  return { status: sent.created ? 201 : 200, body: sentBody(sent) };
}

export function sentBody({ message, receipt }: SendResult): SendResponse {
  return { message, receipt };
}

/** Of a request without any body there are no bytes either. */
function parsed(body: unknown): unknown {
  return body instanceof Piece ? jsonOfBody(body) : body;
}

export function batchBody(outcomes: readonly SendOutcome[]): BatchResponse {
  return { results: outcomes.map(itemOf) };
}

function itemOf(outcome: SendOutcome): BatchItem {
  if (outcome instanceof RelayError) return { status: statusOf(outcome), ...toErrorBody(outcome) };
  return { status: outcome.created ? 201 : 200, ...sentBody(outcome) };
}
