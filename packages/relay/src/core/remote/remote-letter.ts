import type { Message, Part } from "@a2a-relay/protocol";

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

/** Under one name of its own, so that nothing of it is taken for something that an agent knows otherwise. */
function aboutLetter({ id, from, type, subject, thread_id: threadId, task_id: taskId }: Message): Members {
  const about = { message_id: id, from, type, subject, thread_id: threadId };
  return taskId === undefined ? about : { ...about, task_id: taskId };
}

function partsOf({ parts, body, subject }: Message): readonly Part[] {
  return parts ?? [{ text: body === "" ? subject : body }];
}

function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}
