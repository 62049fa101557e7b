import {
  type A2aMessage,
  type A2aSendResult,
  type A2aStreamResponse,
  type A2aTask,
  type Artifact,
  type Part,
  textOfParts,
} from "@a2a-relay/protocol";

/** Whatever an agent answers with. */
export type A2aSpoken = A2aSendResult | A2aStreamResponse | A2aTask | A2aMessage;

/**
 * What an agent said, as text: that of a task's artifacts, else of the message with its status, else the last message
 * of the agent in its history; or that of a message; or that of one event of a stream. Empty where it said nothing.
 */
export function textOf(spoken: A2aSpoken): string {
  if ("status" in spoken && isObject(spoken.status)) return textOfTask(spoken as A2aTask);
  if ("parts" in spoken && Array.isArray(spoken.parts)) return textOfMessage(spoken as A2aMessage);
  const { task, message, statusUpdate, artifactUpdate } = spoken as A2aStreamResponse;
  if (task !== undefined) return textOfTask(task);
  if (message !== undefined) return textOfMessage(message);
  if (artifactUpdate !== undefined) return textOfArtifact(artifactUpdate.artifact);
  return textOfMessage(statusUpdate?.status.message);
}

function textOfTask({ artifacts, status, history }: A2aTask): string {
  const texts = (artifacts ?? []).map(textOfArtifact).filter((text) => text !== "");
  if (texts.length > 0) return texts.join("\n");
  const said = textOfMessage(status.message);
  if (said !== "") return said;
  return textOfMessage((history ?? []).findLast(({ role }) => role === "ROLE_AGENT"));
}

/** Without anything in between: an artifact that was streamed has one part for each piece, in the middle of words. */
function textOfArtifact({ parts }: Artifact): string {
  return partsOf(parts)
    .map((part) => textOfParts([part]))
    .join("");
}

function textOfMessage(message: A2aMessage | undefined): string {
  return textOfParts(partsOf(message?.parts));
}

/** Agents are strangers: where a list is promised there may be none. */
function partsOf(parts: unknown): readonly Part[] {
  return Array.isArray(parts) ? parts.filter(isObject) : [];
}

function isObject(value: unknown): value is Part {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
