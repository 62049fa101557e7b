import assert from "node:assert/strict";
import type {
  LeaseResponse,
  MailboxItem,
  MailboxResponse,
  MessageResponse,
  SendResponse,
  VerifyResponse,
} from "@a2a-relay/protocol";
import { ask, type Reply } from "../support/ask.ts";

export const ADA = "ada@faults";
export const BOB = "bob@faults";

/** A message that was answered: what must be there, whatever happens to the relay. */
export interface CreatedMessage {
  readonly messageId: string;
  readonly taskId: string | undefined;
  readonly body: string;
}

export async function registerBoth(url: string): Promise<void> {
  for (const agentId of [ADA, BOB]) {
    const { status } = await ask(url, "POST", "/agents/register", { agent_id: agentId });
    assert.equal(status, 201);
  }
}

/** From Ada to Bob. */
export async function send(
  url: string,
  body: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Reply<SendResponse>> {
  return ask<SendResponse>(url, "POST", "/messages", { from: ADA, to: BOB, body, ...more });
}

export async function createMessage(
  url: string,
  body: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<CreatedMessage> {
  const reply = await send(url, body, more);
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  return createdFrom(reply, body);
}

export function createdFrom({ body: { receipt } }: Reply<SendResponse>, body: string): CreatedMessage {
  return { messageId: receipt.message_id, taskId: receipt.task_id, body };
}

export async function assertKept(url: string, messages: readonly CreatedMessage[]): Promise<void> {
  for (const { messageId, body } of messages) {
    const found = await ask<MessageResponse>(url, "GET", `/messages/${messageId}`);
    assert.equal(found.status, 200, `message ${messageId} is gone`);
    assert.equal(found.body.message.body, body);
  }
}

export async function assertVerifies(url: string): Promise<VerifyResponse> {
  const { status, body } = await ask<VerifyResponse>(url, "GET", "/journal/verify");
  assert.equal(status, 200);
  assert.equal(body.ok, true, body.problem);
  return body;
}

export async function readAll(url: string, query = "peek=true"): Promise<readonly MailboxItem[]> {
  const { status, body } = await ask<MailboxResponse>(url, "GET", `/mailbox/${BOB}?limit=500&${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.messages;
}

export async function lease(
  url: string,
  request: Readonly<Record<string, unknown>>,
): Promise<LeaseResponse["messages"]> {
  const { status, body } = await ask<LeaseResponse>(url, "POST", `/mailbox/${BOB}/lease`, request);
  assert.equal(status, 200, JSON.stringify(body));
  return body.messages;
}
