import { A2aError, type AgentCard, type Part, toV1Part } from "@a2a-relay/protocol";

/**
 * What an agent's own card says about being called over A2A. The relay can stream and push for any agent, so both are
 * on unless the card switches them off; input modes and extensions hold only where the card names them.
 */
export interface AgentTerms {
  readonly streams: boolean;
  readonly pushes: boolean;
  readonly hasExtendedCard: boolean;
  readonly inputModes: readonly string[] | undefined;
  readonly requiredExtensions: readonly string[];
}

const NO_CARD: AgentCard = {};
/** Asked at every call, and cards change seldom. */
const termsByCard = new WeakMap<AgentCard, AgentTerms>();

/** Whoever has no card has no terms of its own. */
export function termsOf(card: AgentCard = NO_CARD): AgentTerms {
  const before = termsByCard.get(card);
  if (before !== undefined) return before;
  const terms = readTerms(card);
  termsByCard.set(card, terms);
  return terms;
}

function readTerms(card: AgentCard): AgentTerms {
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

/** Before anything is written: whoever breaks the agent's terms is told which. */
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

/** Those of the agent and of each of its skills; undefined where the card names none. */
function inputModesOf(card: AgentCard): readonly string[] | undefined {
  const own = modesIn(card["defaultInputModes"] ?? card["default_input_modes"]);
  if (own.length === 0) return undefined;
  const skills = Array.isArray(card["skills"]) ? card["skills"].map(objectOf) : [];
  return [...new Set([...own, ...skills.flatMap((skill) => modesIn(skill["inputModes"]))])];
}

function modesIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((mode): mode is string => typeof mode === "string") : [];
}

/** Only what says its type can be of a wrong one. */
function mediaTypeOf(part: Part): string | undefined {
  const mediaType = toV1Part(part)["mediaType"];
  return typeof mediaType === "string" && mediaType !== "" ? mediaType.split(";", 1)[0]?.trim() : undefined;
}

/** Cards of older dialects say "text" where "text/plain" is meant. */
function admits(modes: readonly string[], mediaType: string): boolean {
  const [type] = mediaType.split("/", 1);
  return modes.some((mode) => {
    const known = mode.trim().toLowerCase();
    const is = mediaType.toLowerCase();
    return known === is || known === "*/*" || known === "*" || known === `${type}/*` || known === type;
  });
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
