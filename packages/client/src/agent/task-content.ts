import { type A2aMessage, type Message, type Part, type TaskView, textOfParts, toV1Part } from "@a2a-relay/protocol";
import { reasonText } from "./settlement.ts";

/** What an agent says to its requester: the text alone, or more than text. */
export type Said = string | SaidParts;

export interface SaidParts {
  readonly text?: string | undefined;
  /** A2A parts; without `text`, their text is what callers read who know only text. */
  readonly parts?: readonly Part[] | undefined;
  /** Members of the A2A message beside its parts: messageId, metadata, extensions. */
  readonly a2aMessage?: Readonly<Record<string, unknown>> | undefined;
  /** A2A metadata of the step of the task, beside the message. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** The members of a request that say it, under the names they have on the wire. */
export interface SaidRequest {
  text?: string;
  parts?: Part[];
  a2a_message?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

export function saidRequest(said: Said | undefined): SaidRequest {
  if (said === undefined) return {};
  if (typeof said === "string") return { text: said };
  const { text, parts, a2aMessage, metadata } = said;
  return {
    ...(text === undefined ? {} : { text }),
    ...(parts === undefined || parts.length === 0 ? {} : { parts: [...parts] }),
    ...(a2aMessage === undefined ? {} : { a2a_message: { ...a2aMessage } }),
    ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
  };
}

/** As of `saidRequest`, where a reason stands for the text. */
export function reasonRequest(said: Said): Omit<SaidRequest, "text"> & { readonly reason: string } {
  const { text, ...rest } = saidRequest(said);
  return { reason: reasonText(text ?? textOfParts(rest.parts ?? [])), ...rest };
}

/** As of `saidRequest`, for a message, which has a body and no metadata of a step. */
export function saidMessageInput(
  said: Said,
): { readonly body: string } & Pick<SaidRequest, "parts" | "a2a_message"> {
  const { text, metadata: _, ...rest } = saidRequest(said);
  return { body: text ?? textOfParts(rest.parts ?? []), ...rest };
}

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
