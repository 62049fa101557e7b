import type { ArtifactInput, MessageInput } from "@a2a-relay/protocol";

/**
 * A UUID of version 7. It begins with the time, because the relay stores keys in an ordered index, where random ones
 * cost about twice as much.
 */
export function createIdempotencyKey(nowMs: number = Date.now()): string {
  const bytes = new Uint8Array(16);
  // Unlike crypto.randomUUID, this also works on browser pages that were not loaded over HTTPS.
  crypto.getRandomValues(bytes);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(nowMs / 2 ** 32));
  view.setUint32(2, nowMs % 2 ** 32);
  view.setUint8(6, 0x70 | (view.getUint8(6) & 0x0f));
  view.setUint8(8, 0x80 | (view.getUint8(8) & 0x3f));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/**
 * Adds an idempotency key, by which the relay recognises a repeated send. A message with an id needs none, and a signed
 * message must stay unchanged.
 */
export function withIdempotencyKey(message: MessageInput): MessageInput {
  const recognisable =
    isGiven(message.idempotency_key) ||
    isGiven(message.idempotency) ||
    isGiven(message.id) ||
    isGiven(message.signature);
  return recognisable ? message : { ...message, idempotency_key: createIdempotencyKey() };
}

/** Adds an id, so that a repeated request does not add the artifact twice. */
export function withArtifactId(artifact: ArtifactInput): ArtifactInput {
  const named = isGiven(artifact.artifactId) || isGiven(artifact.artifact_id);
  return named ? artifact : { ...artifact, artifactId: createIdempotencyKey() };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
