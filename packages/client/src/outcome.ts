import {
  LIMITS,
  type MessageInput,
  type TaskCompleteRequest,
  type TaskFailRequest,
} from "@a2a-relay/protocol";

/** What is to become of a message after its handler: decided once, carried out until the relay has heard it. */
export type Outcome =
  | { readonly act: "acknowledge" }
  | { readonly act: "complete"; readonly request: TaskCompleteRequest }
  | { readonly act: "fail" | "reject"; readonly request: TaskFailRequest }
  /** A question to the requester ends the turn, not the task: the message goes out, the mail is done. */
  | { readonly act: "ask"; readonly message: MessageInput }
  | { readonly act: "hand_over"; readonly message: MessageInput }
  /** MailboxMessage that is no task and could not be handled: it is dead, and its sender is told. */
  | { readonly act: "fail_message"; readonly reason: string }
  | { readonly act: "release" };

/** A reason for the other side, from whatever was thrown: never empty, never longer than the relay takes. */
export function reasonText(reason: unknown): string {
  const text = (reason instanceof Error ? reason.message : String(reason)).trim();
  if (text === "") return reason instanceof Error ? reason.name : "no reason was given";
  return text.slice(0, LIMITS.reasonCharsMax).toWellFormed();
}
