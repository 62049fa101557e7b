import {
  type A2aMessage,
  type Message,
  type Part,
  type TaskView,
  textOfParts,
  toV1Part,
} from "@a2a-relay/protocol";
import { asObject } from "../http/http-answer.ts";
import { reasonText } from "./settlement.ts";

/** What an agent says to its requester: text, or parts and metadata too. */
export type Said = string | SaidParts;

export interface SaidParts {
  readonly text?: string | undefined;
  /** A2A parts; without `text`, their text is used as the text. */
  readonly parts?: readonly Part[] | undefined;
  /** Members of the A2A message beside its parts: messageId, metadata, extensions. */
  readonly a2aMessage?: Readonly<Record<string, unknown>> | undefined;
  /** A2A metadata of the task update, beside the message. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** The same under the names of the wire. */
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

/** Like `saidRequest`, with the text as `reason`. */
export function reasonRequest(said: Said): Omit<SaidRequest, "text"> & { readonly reason: string } {
  const { text, ...rest } = saidRequest(said);
  return { reason: reasonText(text ?? textOfParts(rest.parts ?? [])), ...rest };
}

/** Like `saidRequest`, for a message, which has a body and no update metadata. */
export function saidMessageInput(
  said: Said,
): { readonly body: string } & Pick<SaidRequest, "parts" | "a2a_message"> {
  const { text, metadata: _, ...rest } = saidRequest(said);
  return { body: text ?? textOfParts(rest.parts ?? []), ...rest };
}

/** A request as A2A 1.0, from any wire. */
export interface AskedOverA2a {
  /** Always with the ids of the task and its context. */
  readonly message: A2aMessage;
  /** Metadata of the request, not of the message. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /** The media types that the caller accepts; empty when it did not say. */
  readonly acceptedOutputModes: readonly string[];
}

/** Derived from the message; the sender's own values are ignored. */
const OWN_MEMBERS = new Set(["role", "parts", "taskId", "contextId", "kind"]);

export function askedOverA2a(message: Message, { id: taskId, thread_id: contextId }: TaskView): AskedOverA2a {
  const more = Object.entries(asObject(message["a2a_message"]) ?? {}).filter(
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
    metadata: asObject(message["a2a_metadata"]),
    acceptedOutputModes: Array.isArray(modes) ? modes.filter((mode) => typeof mode === "string") : [],
  };
}

/** The caller speaks standard A2A, so the answer must contain only what the agent said. */
export function isAskedOverA2a(message: Message): boolean {
  return asObject(message["a2a_message"]) !== undefined;
}
