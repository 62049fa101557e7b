import { A2A_DIALECTS, type A2aStreamResponse, type A2aTask } from "@a2a-relay/protocol";
import type { OutboundRequest } from "../ports/outbound-http.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskPushConfig } from "../ports/task-pushes.ts";

/** What is sent: the event itself to those who read 1.0, and the task as it stands to those who read older dialects. */
export type TaskNews =
  | { readonly event: A2aStreamResponse; readonly task?: undefined }
  | { readonly task: A2aTask; readonly event?: undefined };

export function isToldByTask({ dialect }: TaskPushConfig): boolean {
  return A2A_DIALECTS[dialect].pushes === "task";
}

export function taskPushRequest(
  config: TaskPushConfig,
  { clientId }: TaskRecord,
  { event, task }: TaskNews,
  { userAgent }: { readonly userAgent: string },
): Pick<OutboundRequest, "method" | "headers" | "body"> {
  const dialect = A2A_DIALECTS[config.dialect];
  if (event !== undefined) {
    const body = JSON.stringify(dialect.writeEvent(event, { isFinal: false }));
    const headers = { "content-type": "application/a2a+json", "a2a-version": config.dialect };
    return { method: "POST", headers: { ...headers, ...sharedHeaders(config, userAgent) }, body };
  }
  // Callers of 0.1 know the task by the name they gave it.
  const named = config.dialect === "0.1" && clientId !== null ? { ...task, id: clientId } : task;
  const body = JSON.stringify(dialect.writeResult("get", named));
  const headers = { "content-type": "application/json" };
  return { method: "POST", headers: { ...headers, ...sharedHeaders(config, userAgent) }, body };
}

function sharedHeaders(
  { token, scheme, credentials }: TaskPushConfig,
  userAgent: string,
): Readonly<Record<string, string>> {
  return {
    "user-agent": userAgent,
    ...(scheme === null || credentials === null ? {} : { authorization: `${scheme} ${credentials}` }),
    ...(token === null ? {} : { "x-a2a-notification-token": token }),
  };
}
