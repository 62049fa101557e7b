import {
  A2aError,
  type A2aMessage,
  type A2aStreamResponse,
  type A2aTask,
  type Part,
  toV1Part,
} from "@a2a-relay/protocol";

/** What agents say is kept as it came; what is no A2A would break the libraries of A2A callers, so it is not shown. */
export function assertAnswer({ task, message, statusUpdate, artifactUpdate }: A2aStreamResponse): void {
  if (task !== undefined) assertTask(task);
  assertMessage(message);
  assertMessage(statusUpdate?.status.message);
  assertParts(artifactUpdate?.artifact.parts ?? []);
}

function assertTask({ status, history = [], artifacts = [] }: A2aTask): void {
  assertMessage(status.message);
  for (const message of history) if (message.role === "ROLE_AGENT") assertMessage(message);
  for (const { parts } of artifacts) assertParts(parts);
}

function assertMessage(message: A2aMessage | undefined): void {
  assertParts(message?.parts ?? []);
}

function assertParts(parts: readonly Part[]): void {
  const foreign = parts.find((part) => !hasContent(toV1Part(part)));
  if (foreign === undefined) return;
  const names = Object.keys(foreign).slice(0, 5).join(", ") || "nothing";
  throw new A2aError(
    "InvalidAgentResponse",
    `the agent answered with a part that is none of A2A: it has ${names}, and no text, raw, url or data`,
  );
}

function hasContent(part: Part): boolean {
  const isThere = (member: string): boolean => typeof part[member] === "string";
  return isThere("text") || isThere("raw") || isThere("url") || Object.hasOwn(part, "data");
}
