import type { Artifact, TaskArtifactRequest, TaskStatusRequest } from "@a2a-relay/protocol";
import type { ArtifactStep, StatusStep } from "../ports/tasks.ts";
import { saidBy } from "../rules/task-update.ts";

/** What an agent reports, with the message that asks its requester where there is one. */
export function statusStep(
  { state, parts, metadata, a2a_message: a2aMessage }: TaskStatusRequest,
  text: string,
  messageId: string | undefined,
): StatusStep {
  const said = saidBy({ text, parts, a2aMessage, messageId });
  return { kind: "status", state, ...said, ...(metadata === undefined ? {} : { metadata }) };
}

/** An artifact, or a piece of one: the last piece unless it is appended, or says otherwise. */
export function artifactStep(
  { append = false, last_chunk: lastChunk = !append, metadata }: TaskArtifactRequest,
  artifact: Artifact,
): ArtifactStep {
  const more = metadata === undefined ? {} : { metadata };
  return { kind: "artifact", artifact, append, lastChunk, ...more };
}
