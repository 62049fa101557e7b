import { A2aError, type AgentCard, type Part, toV1Part } from "@a2a-relay/protocol";

/**
 * An agent's own rules for A2A callers, read from its card. The relay streams and pushes for any agent, so both are on
 * unless the card switches them off. Input modes and extensions are restricted only where the card names them.
 */
export interface AgentTerms {
  readonly streams: boolean;
  readonly pushes: boolean;
  readonly hasExtendedCard: boolean;
  readonly inputModes: readonly string[] | undefined;
  readonly requiredExtensions: readonly string[];
}

export function termsOf(card: AgentCard = {}): AgentTerms {
  const capabilities = objectOf(card["capabilities"]);
  const extensions = Array.isArray(capabilities["extensions"]) ? capabilities["extensions"] : [];
  return {
    streams: capabilities["streaming"] !== false,
    pushes: capabilities["pushNotifications"] !== false && capabilities["push_notifications"] !== false,
    hasExtendedCard:
      capabilities["extendedAgentCard"] === true || card["supportsAuthenticatedExtendedCard"] === true,
    inputModes: inputModesOf(card),
    requiredExtensions: extensions
      .map(objectOf)
      .filter(({ required, uri }) => required === true && typeof uri === "string")
      .map(({ uri }) => uri as string),
  };
}

/** Run before anything is written. The error names the rule that the message breaks. */
export function assertTerms(
  terms: AgentTerms,
  { parts, extensions }: { readonly parts: readonly Part[]; readonly extensions: readonly string[] },
): void {
  const missing = terms.requiredExtensions.find((uri) => !extensions.includes(uri));
  if (missing !== undefined) {
    throw new A2aError(
      "ExtensionSupportRequired",
      `this agent requires the extension ${missing}; name it in the header A2A-Extensions if you support it`,
    );
  }
  const { inputModes } = terms;
  if (inputModes === undefined) return;
  const foreign = parts.map(mediaTypeOf).find((mode) => mode !== undefined && !admits(inputModes, mode));
  if (foreign === undefined) return;
  throw new A2aError(
    "ContentTypeNotSupported",
    `this agent takes ${inputModes.join(", ")}; a part of the message is ${foreign}`,
  );
}

/** The modes of the agent and of its skills; undefined where the card names none. */
function inputModesOf(card: AgentCard): readonly string[] | undefined {
  const own = modesIn(card["defaultInputModes"] ?? card["default_input_modes"]);
  if (own.length === 0) return undefined;
  const skills = Array.isArray(card["skills"]) ? card["skills"].map(objectOf) : [];
  return [...new Set([...own, ...skills.flatMap((skill) => modesIn(skill["inputModes"]))])];
}

function modesIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((mode): mode is string => typeof mode === "string") : [];
}

/** Undefined for a part without a media type: it is never refused. */
function mediaTypeOf(part: Part): string | undefined {
  const mediaType = toV1Part(part)["mediaType"];
  return typeof mediaType === "string" && mediaType !== "" ? mediaType.split(";", 1)[0]?.trim() : undefined;
}

/** Cards of older dialects say "text" where "text/plain" is meant. */
function admits(modes: readonly string[], mediaType: string): boolean {
  const [type] = mediaType.split("/", 1);
  return modes.some((mode) => {
    const accepted = mode.trim().toLowerCase();
    return [mediaType.toLowerCase(), "*/*", "*", `${type}/*`, type].includes(accepted);
  });
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
