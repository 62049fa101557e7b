import { SignedMessageSchema } from "@a2a-relay/protocol";
import type { SignedInbox } from "../../core/messages/signed-inbox.ts";
import { answerOf } from "./message-routes.ts";
import type { Route } from "./route.ts";

/** Sending by webhook: the message itself says who sent it. */
export function inboxRoutes(inbox: SignedInbox): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/api/a2a/inbox",
      tag: "Messages",
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
