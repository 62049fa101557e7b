import { type Part, textOfParts } from "@a2a-relay/protocol";
import { reasonText } from "./outcome.ts";

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
