import { LIMITS } from "../base/limits.ts";
import { MessageInputSchema, SignedMessageSchema } from "../model/message.ts";
import { BatchResponseSchema, MessageResponseSchema, SendResponseSchema } from "../wire/answers.ts";
import { BatchRequestSchema } from "../wire/requests.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries } from "./operation.ts";
import { SEND_ERRORS } from "./shared.ts";

const tag = "Messages";
const { agent, peer, signingKey } = EXAMPLE_IDS;

export const messages = {
  send: {
    method: "POST",
    path: "/messages",
    tag,
    summary: "Send a message: answered once it is on disk",
    verbs: ["messages.send"],
    body: MessageInputSchema,
    answers: {
      201: { description: "Accepted: the complete message and its receipt", schema: SendResponseSchema },
      200: {
        description: "The same message was accepted before: the same receipt",
        schema: SendResponseSchema,
      },
    },
    errors: SEND_ERRORS,
    repeat: "with_key",
    example: {
      body: { from: agent, to: peer, type: "request", subject: "PR 12", body: "Please review PR 12" },
    },
  },
  sendBatch: {
    method: "POST",
    path: "/messages/batch",
    tag,
    summary: `Send up to ${LIMITS.batchMessagesMax} messages, each answered in order`,
    verbs: ["messages.send"],
    body: BatchRequestSchema,
    bodyBytesMax: LIMITS.batchBodyBytesMax,
    answers: {
      200: {
        description: "One result a message, in order, each with its own status",
        schema: BatchResponseSchema,
      },
    },
    errors: SEND_ERRORS,
    repeat: "with_key",
    example: {
      body: {
        atomic: true,
        messages: [
          { from: agent, to: peer, body: "PR 12 is merged" },
          { from: agent, to: peer, body: "请看 PR 13" },
        ],
      },
    },
  },
  sendSigned: {
    method: "POST",
    path: "/api/a2a/inbox",
    tag,
    summary: "Send a message that is signed with a signing key, and needs no other key",
    open: true,
    isSigned: true,
    verbs: [],
    body: SignedMessageSchema,
    answers: {
      201: { description: "Accepted: the complete message and its receipt", schema: SendResponseSchema },
      200: {
        description: "The same message was accepted before, under another nonce: the same receipt",
        schema: SendResponseSchema,
      },
    },
    errors: ["unauthenticated", "permission_denied", ...SEND_ERRORS],
    // The relay would refuse the nonce.
    repeat: "if_not_done",
    example: {
      body: {
        id: "signed-1",
        from: agent,
        to: peer,
        thread_id: "pr-12",
        created_at: "2026-05-08T08:30:00Z",
        body: "PR 12 is merged",
        key_id: signingKey,
        nonce: "TjGQfpyt5DcXDKVLxcpkFo",
        signed_at: "2026-05-08T08:30:00Z",
        signature: "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
      },
    },
  },
  get: {
    method: "GET",
    path: "/messages/{id}",
    tag,
    summary: "A message, its delivery and all its receipts",
    verbs: ["messages.read"],
    answers: { 200: { description: "The message", schema: MessageResponseSchema } },
    errors: ["not_found"],
    repeat: "always",
    example: { params: { id: EXAMPLE_IDS.message } },
  },
} as const satisfies OperationEntries;
