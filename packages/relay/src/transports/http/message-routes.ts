import { BatchRequestSchema, LIMITS, MessageInputSchema } from "@a2a-relay/protocol";
import type { MessageService, SentItem } from "../../core/messages/message-service.ts";
import { statusOf } from "./http-error.ts";
import { param, type Route } from "./route.ts";

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
      handle: async ({ principal, body }) => {
        const { created, messageJson, receipt } = await messages.send(principal, body);
        const json = `{"message":${messageJson},"receipt":${JSON.stringify(receipt)}}`;
        return { status: created ? 201 : 200, json };
      },
    },
    {
      method: "POST",
      path: "/messages/batch",
      tag,
      summary: `Send up to ${LIMITS.batchMessagesMax} messages, each answered in order`,
      body: BatchRequestSchema,
      bodyBytesMax: LIMITS.batchBodyBytesMax,
      answers: { 200: "One result a message, in order, each with its own status" },
      handle: async ({ principal, body }) => {
        const items = await messages.sendBatch(principal, body, statusOf);
        return { json: `{"results":[${items.map(itemJson).join(",")}]}` };
      },
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

function itemJson(item: SentItem): string {
  if (item.messageJson === undefined || !("receipt" in item)) return JSON.stringify(item);
  return `{"status":${item.status},"message":${item.messageJson},"receipt":${JSON.stringify(item.receipt)}}`;
}
