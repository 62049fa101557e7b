import { LIMITS, type Message, type Part } from "@a2a-relay/protocol";
import { RemoteFailure } from "./remote-failure.ts";

/** The place of a letter at the agent that gets it, as that agent names it. */
export interface RemotePlace {
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
}

/** What a task is asked for with: enough of its history to have the agent's last word, should that be there only. */
export const HISTORY_LENGTH = 5;

type Members = Readonly<Record<string, unknown>>;

/** The parameters of a send that brings the letter, in A2A 1.0. It is answered at once: who works is looked after. */
export function sendParams(letter: Message, { taskId, contextId }: RemotePlace): Members {
  const { metadata, extensions } = membersOf(letter["a2a_message"]);
  const modes = letter["accepted_output_modes"];
  return {
    message: {
      messageId: letter.id,
      role: "ROLE_USER",
      parts: partsOf(letter),
      ...(contextId === undefined ? {} : { contextId }),
      ...(taskId === undefined ? {} : { taskId }),
      ...(Array.isArray(extensions) ? { extensions } : {}),
      metadata: { ...membersOf(metadata), a2a_relay: aboutLetter(letter) },
    },
    configuration: {
      returnImmediately: true,
      historyLength: HISTORY_LENGTH,
      ...(Array.isArray(modes) ? { acceptedOutputModes: modes } : {}),
    },
  };
}

/** A letter that comes back to relays over and over would go round for ever. */
export function assertGoesOn(letter: Message): void {
  const hops = hopsOf(letter);
  if (hops < LIMITS.a2aHopsMax) return;
  throw new RemoteFailure(
    "refused",
    `it has come through ${hops} relays already, the limit is ${LIMITS.a2aHopsMax}; does an agent's address lead back to a relay?`,
  );
}

/** How many relays the letter came through over A2A before this one. */
function hopsOf(letter: Message): number {
  const { metadata } = membersOf(letter["a2a_message"]);
  const { hops } = membersOf(membersOf(metadata)["a2a_relay"]);
  return typeof hops === "number" && hops > 0 ? Math.ceil(hops) : 0;
}

/** Under one name of its own, so that nothing of it is taken for something that an agent knows otherwise. */
function aboutLetter(letter: Message): Members {
  const { id, from, type, subject, thread_id: threadId, task_id: taskId } = letter;
  const about = { message_id: id, from, type, subject, thread_id: threadId, hops: hopsOf(letter) + 1 };
  return taskId === undefined ? about : { ...about, task_id: taskId };
}

function partsOf({ parts, body, subject }: Message): readonly Part[] {
  return parts ?? [{ text: body === "" ? subject : body }];
}

function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}
