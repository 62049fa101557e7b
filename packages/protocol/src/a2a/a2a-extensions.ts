/** Streams have ids, and `Last-Event-ID` brings what was missed. */
export const STREAM_RESUME_EXTENSION = "urn:a2a-relay:extension:stream-resume:v1";
/** The header `Idempotency-Key` makes a repeated send the same send. */
export const IDEMPOTENCY_KEY_EXTENSION = "urn:a2a-relay:extension:idempotency-key:v1";
/** Whether the agent is there, and that messages wait for it when it is not. */
export const AVAILABILITY_EXTENSION = "urn:a2a-relay:extension:availability:v1";

/** What the relay does for every agent beside what A2A asks for. */
export const RELAY_EXTENSIONS = [
  STREAM_RESUME_EXTENSION,
  IDEMPOTENCY_KEY_EXTENSION,
  AVAILABILITY_EXTENSION,
] as const;
