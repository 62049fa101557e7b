import { BatchRequestSchema, LIMITS, MessageInputSchema } from "@a2a-relay/protocol";
import type { MessageService, SentItem } from "../../core/messages/message-service.ts";
import type { SendAnswer } from "../../core/messages/send-planner.ts";
import { statusOf } from "./http-error.ts";
import { jsonOfBody } from "./read-body.ts";
import { Piece, type ReusedMemory } from "./reused-memory.ts";
import { type Answer, param, type Route } from "./route.ts";

const tag = "Messages";

/** Sending, and what became of it. */
export function messageRoutes(messages: MessageService, memory: ReusedMemory): readonly Route[] {
  const write = (items: readonly SentItem[]): Piece => batchBytes(items, memory);
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
        json: await messages.sendBatch(principal, { read: () => parsed(body), write, statusOf }),
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

/** The message as it is stored, and its receipt. */
export function answerOf(answer: SendAnswer): Answer {
  return { status: answer.created ? 201 : 200, json: sentJson(answer) };
}

export function sentJson({ messageJson, receipt }: Pick<SendAnswer, "messageJson" | "receipt">): string {
  return `{"message":${messageJson},"receipt":${JSON.stringify(receipt)}}`;
}

/** Of a request without any body there are no bytes either. */
function parsed(body: unknown): unknown {
  return body instanceof Piece ? jsonOfBody(body) : body;
}

export function batchJson(items: readonly SentItem[]): string {
  return `{"results":[${items.map(itemJson).join(",")}]}`;
}

/** NewMessage by message into memory outside the heap: the whole text would be put together and copied twice. */
function batchBytes(items: readonly SentItem[], memory: ReusedMemory): Piece {
  const texts = items.map((item, index) => `${index === 0 ? '{"results":[' : ","}${itemJson(item)}`);
  texts.push("]}");
  return memory.write(texts);
}

function itemJson(item: SentItem): string {
  if (item.messageJson === undefined || !("receipt" in item)) return JSON.stringify(item);
  return `{"status":${item.status},"message":${item.messageJson},"receipt":${JSON.stringify(item.receipt)}}`;
}
