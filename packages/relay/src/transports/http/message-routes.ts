import {
  type BatchItem,
  type BatchResponse,
  operations,
  RelayError,
  type SendResponse,
  toErrorBody,
} from "@a2a-relay/protocol";
import type { MessageService } from "../../core/messages/message-service.ts";
import type { SendOutcome } from "../../core/messages/send-batch.ts";
import type { SignedInbox } from "../../core/messages/signed-inbox.ts";
import type { SendResult } from "../../core/messages/decide-send.ts";
import { statusOf } from "./http-error.ts";
import { type Answer, route, type Route } from "./route.ts";

/** Messages over HTTP. */
export function messageRoutes(messages: MessageService): readonly Route[] {
  return [
    route(operations.messages.send, async ({ principal, body }) =>
      answerOf(await messages.send(principal, body)),
    ),
    route(operations.messages.sendBatch, async ({ principal, body }) => ({
      body: batchBody(await messages.sendBatch(principal, body)),
    })),
    route(operations.messages.get, async ({ principal, params }) => ({
      body: await messages.get(principal, params.id),
    })),
  ];
}

/** The inbox for signed messages, whose signature names the sender. */
export function inboxRoutes(inbox: SignedInbox): readonly Route[] {
  return [
    route(operations.messages.sendSigned, async ({ body, tenant }) =>
      answerOf(await inbox.receive(body, { transport: "http", tenant })),
    ),
  ];
}

function answerOf(sent: SendResult): Answer<SendResponse> {
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
