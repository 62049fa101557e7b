import assert from "node:assert/strict";
import type { MessageResponse, PushView, TaskView } from "@a2a-relay/protocol";
import {
  type SdkAgent,
  type SdkAgentOptions,
  startSdkAgent,
} from "../../packages/client/testing/sdk-agent-server.ts";
import { type HttpRelay, LULU } from "../../packages/relay/testing/http-relay.ts";
import { eventually } from "../support/eventually.ts";

/** What a test sends to a remote agent, and reads about it at the relay. */
export interface AskedRelay {
  post: HttpRelay["post"];
  get: HttpRelay["get"];
}

/** Asks the agent at the address, or of that id, for something. Answers with the message's id and the task's. */
export async function ask(
  relay: AskedRelay,
  to: string,
  body: string,
  more: object = {},
): Promise<{ readonly messageId: string; readonly taskId: string }> {
  const { status, json, text } = await relay.post("/messages", {
    from: LULU,
    to,
    type: "request",
    body,
    ...more,
  });
  assert.equal(status, 201, text);
  return { messageId: json.receipt.message_id, taskId: json.receipt.task_id };
}

export async function taskOf(relay: AskedRelay, taskId: string): Promise<TaskView> {
  return (await relay.get(`/tasks/${taskId}`)).json.task;
}

/** The task once it is in this state. */
export function until(relay: AskedRelay, taskId: string, state: TaskView["state"]): Promise<TaskView> {
  return eventually(
    () => taskOf(relay, taskId),
    (task) => task.state === state,
  );
}

export async function messageOf(
  relay: AskedRelay,
  messageId: string,
): Promise<MessageResponse & { readonly push: PushView }> {
  return (await relay.get(`/messages/${messageId}`)).json as unknown as MessageResponse & {
    readonly push: PushView;
  };
}

/** The text of what was made for the task. */
export function madeIn(task: TaskView): string {
  return task.artifacts.flatMap(({ parts }) => parts.map((part) => part["text"])).join("");
}

/** An agent of the official SDK whose card names another address, such as that of a line that can be cut. */
export async function startAgentBehind(front: string, options: SdkAgentOptions = {}): Promise<SdkAgent> {
  const supportedInterfaces = [{ url: `${front}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  return startSdkAgent({ ...options, card: { supportedInterfaces, ...options.card } });
}
