import { LIMITS, type Message, type Part } from "@a2a-relay/protocol";
import { RemoteFailure } from "../ports/outbound.ts";

/** The task and the context that a message belongs to, as the remote agent names them. */
export interface RemoteTarget {
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
}

/** Messages of a task's history that the relay asks for: enough to see all since the last poll. */
export const HISTORY_LENGTH = 20;

type Members = Readonly<Record<string, unknown>>;

/** Members that this relay writes itself. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(["role", "parts", "taskId", "contextId", "kind"]);
/** Metadata for this relay; another relay would read it as its own. */
const OWN_METADATA: ReadonlySet<string> = new Set(["relay_target_agent_id", "sender_agent_id"]);

/**
 * The parameters of `send` in A2A 1.0, with everything that an A2A caller wrote beside the message. The agent answers
 * at once; the relay polls the task.
 */
export function sendParams(message: Message, target: RemoteTarget): Members {
  const modes = message["accepted_output_modes"];
  const metadata = without(message["a2a_metadata"], OWN_METADATA);
  return {
    message: messageOf(message, target),
    configuration: {
      returnImmediately: true,
      historyLength: HISTORY_LENGTH,
      ...(Array.isArray(modes) ? { acceptedOutputModes: modes } : {}),
    },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

function messageOf(message: Message, { taskId, contextId }: RemoteTarget): Members {
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

/** Ends a loop of relays that forward a message to each other. */
export function assertHopsLeft(message: Message): void {
  const hops = hopsOf(message);
  if (hops < LIMITS.a2aHopsMax) return;
  throw new RemoteFailure(
    "refused",
    `it has come through ${hops} relays already, the limit is ${LIMITS.a2aHopsMax}; does an agent's address lead back to a relay?`,
  );
}

/** Relays that forwarded the message over A2A before this one. */
function hopsOf(message: Message): number {
  const { metadata } = membersOf(message["a2a_message"]);
  const { hops } = membersOf(membersOf(metadata)["a2a_relay"]);
  return typeof hops === "number" && hops > 0 ? Math.ceil(hops) : 0;
}

/** Under one name, so that it does not clash with other metadata. */
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
