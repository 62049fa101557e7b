import type { ArtifactInput, MessageInput } from "@a2a-relay/protocol";
import { createIdempotencyKey } from "./idempotency-key.ts";

/**
 * The message with something by which the relay recognises it when it comes twice. An id of the sender's own
 * choice already does that, and what is signed must stay as it was signed.
 */
export function withIdempotencyKey(message: MessageInput): MessageInput {
  const recognisable =
    isGiven(message.idempotency_key) ||
    isGiven(message.idempotency) ||
    isGiven(message.id) ||
    isGiven(message.signature);
  return recognisable ? message : { ...message, idempotency_key: createIdempotencyKey() };
}

/** The artifact with an id, so that putting it twice, alone or in a completion, is putting it once. */
export function withArtifactId(artifact: ArtifactInput): ArtifactInput {
  const named = isGiven(artifact.artifactId) || isGiven(artifact.artifact_id);
  return named ? artifact : { ...artifact, artifactId: createIdempotencyKey() };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
