import { type A2aMessage, type Message, type TaskView, toV1Part } from "@a2a-relay/protocol";

/** What a caller asks for, in the words of A2A 1.0, whichever wire it came by. */
export interface AskedOverA2a {
  /** With the ids of the task and of its context, also where the caller did not know them yet. */
  readonly message: A2aMessage;
  /** Metadata of the request, beside that of the message. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /** The media types that the caller can take; empty: it did not say. */
  readonly acceptedOutputModes: readonly string[];
}

/** Members that follow from the message itself, whatever its writer put under their names. */
const OWN_MEMBERS = new Set(["role", "parts", "taskId", "contextId", "kind"]);

export function askedOverA2a(message: Message, { id: taskId, thread_id: contextId }: TaskView): AskedOverA2a {
  const more = Object.entries(objectOf(message["a2a_message"]) ?? {}).filter(
    ([name]) => !OWN_MEMBERS.has(name),
  );
  const modes = message["accepted_output_modes"];
  return {
    message: {
      messageId: message.id,
      ...Object.fromEntries(more),
      role: "ROLE_USER",
      parts: (message.parts ?? [{ text: message.body }]).map(toV1Part),
      taskId,
      contextId,
    },
    metadata: objectOf(message["a2a_metadata"]),
    acceptedOutputModes: Array.isArray(modes) ? modes.filter((mode) => typeof mode === "string") : [],
  };
}

/** A standard A2A caller, to whom nothing may be said that the agent did not say. */
export function isAskedOverA2a(message: Message): boolean {
  return objectOf(message["a2a_message"]) !== undefined;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
}
