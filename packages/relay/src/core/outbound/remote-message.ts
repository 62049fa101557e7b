import { LIMITS, type Message, type Part } from "@a2a-relay/protocol";
import { RemoteFailure } from "./remote-calls.ts";

/** The place of a message at the agent that gets it, as that agent names it. */
export interface RemotePosition {
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
}

/** What a task is asked for with: enough of its history to have what the agent said since it was asked before. */
export const HISTORY_LENGTH = 20;

type Members = Readonly<Record<string, unknown>>;

/** Members of a message that say where it belongs at this relay, or what the message itself says. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(["role", "parts", "taskId", "contextId", "kind"]);
/** Metadata that was meant for this relay: another one would take it for its own. */
const OWN_METADATA: ReadonlySet<string> = new Set(["relay_target_agent_id", "sender_agent_id"]);

/**
 * The parameters of a send that brings the message, in A2A 1.0, with all that a caller of A2A wrote beside the message.
 * It is answered at once: who works is looked after.
 */
export function sendParams(message: Message, place: RemotePosition): Members {
  const modes = message["accepted_output_modes"];
  const metadata = without(message["a2a_metadata"], OWN_METADATA);
  return {
    message: messageOf(message, place),
    configuration: {
      returnImmediately: true,
      historyLength: HISTORY_LENGTH,
      ...(Array.isArray(modes) ? { acceptedOutputModes: modes } : {}),
    },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

function messageOf(message: Message, { taskId, contextId }: RemotePosition): Members {
  const { messageId, metadata, extensions, ...more } = without(message["a2a_message"], OWN_MEMBERS);
  return {
    ...more,
    messageId: typeof messageId === "string" && messageId !== "" ? messageId : message.id,
    role: "ROLE_USER",
    parts: partsOf(message),
    ...(contextId === undefined ? {} : { contextId }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(Array.isArray(extensions) ? { extensions } : {}),
    metadata: { ...without(metadata, OWN_METADATA), a2a_relay: aboutMessage(message) },
  };
}

/** A message that comes back to relays over and over would go round for ever. */
export function assertGoesOn(message: Message): void {
  const hops = hopsOf(message);
  if (hops < LIMITS.a2aHopsMax) return;
  throw new RemoteFailure(
    "refused",
    `it has come through ${hops} relays already, the limit is ${LIMITS.a2aHopsMax}; does an agent's address lead back to a relay?`,
  );
}

/** How many relays the message came through over A2A before this one. */
function hopsOf(message: Message): number {
  const { metadata } = membersOf(message["a2a_message"]);
  const { hops } = membersOf(membersOf(metadata)["a2a_relay"]);
  return typeof hops === "number" && hops > 0 ? Math.ceil(hops) : 0;
}

/** Under one name of its own, so that nothing of it is taken for something that an agent knows otherwise. */
function aboutMessage(message: Message): Members {
  const { id, from, type, subject, thread_id: threadId, task_id: taskId } = message;
  const about = { message_id: id, from, type, subject, thread_id: threadId, hops: hopsOf(message) + 1 };
  return taskId === undefined ? about : { ...about, task_id: taskId };
}

function partsOf({ parts, body, subject }: Message): readonly Part[] {
  return parts ?? [{ text: body === "" ? subject : body }];
}

function without(value: unknown, names: ReadonlySet<string>): Members {
  return Object.fromEntries(Object.entries(membersOf(value)).filter(([name]) => !names.has(name)));
}

function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}
