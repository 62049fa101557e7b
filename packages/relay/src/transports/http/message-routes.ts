import { BatchRequestSchema, LIMITS, MessageInputSchema } from "@a2a-relay/protocol";
import type { MessageService, SentItem } from "../../core/messages/message-service.ts";
import type { SendAnswer } from "../../core/messages/send-planner.ts";
import { statusOf } from "./http-error.ts";
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
      answers: { 200: "One result a message, in order, each with its own status" },
      handle: async ({ principal, body }) => ({
        json: batchJson(await messages.sendBatch(principal, body, statusOf)),
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

/** The letter as it is stored, and its receipt. */
export function answerOf(answer: SendAnswer): Answer {
  return { status: answer.created ? 201 : 200, json: sentJson(answer) };
}

export function sentJson({ messageJson, receipt }: Pick<SendAnswer, "messageJson" | "receipt">): string {
  return `{"message":${messageJson},"receipt":${JSON.stringify(receipt)}}`;
}

export function batchJson(items: readonly SentItem[]): string {
  return `{"results":[${items.map(itemJson).join(",")}]}`;
}

function itemJson(item: SentItem): string {
  if (item.messageJson === undefined || !("receipt" in item)) return JSON.stringify(item);
  return `{"status":${item.status},"message":${item.messageJson},"receipt":${JSON.stringify(item.receipt)}}`;
}
