import {
  type A2aMessage,
  type A2aSendResult,
  type A2aStreamResponse,
  type A2aTask,
  type Artifact,
  type Part,
  textOfParts,
} from "@a2a-relay/protocol";

export type A2aSpoken = A2aSendResult | A2aStreamResponse | A2aTask | A2aMessage;

/**
 * The text of an answer: of a task's artifacts, else of its status message, else of the agent's last message in the
 * history; or of a message; or of one event of a stream. Empty when there is none.
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

/** Joined without separators: a streamed artifact has one part for each piece, split within words. */
function textOfArtifact({ parts }: Artifact): string {
  return partsOf(parts)
    .map((part) => textOfParts([part]))
    .join("");
}

function textOfMessage(message: A2aMessage | undefined): string {
  return textOfParts(partsOf(message?.parts));
}

/** Agents may violate the protocol, so the list may be missing. */
function partsOf(parts: unknown): readonly Part[] {
  return Array.isArray(parts) ? parts.filter(isObject) : [];
}

function isObject(value: unknown): value is Part {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
