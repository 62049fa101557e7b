import {
  type AgentCard,
  type AgentView,
  AVAILABILITY_EXTENSION,
  formatInstant,
  operations,
  type Presence,
  readCard,
  RELAY_EXTENSIONS,
  type Skill,
} from "@a2a-relay/protocol";
import { type Principal, speaksFor } from "../access/principal.ts";
import { termsOf } from "./agent-terms.ts";
import type { AgentRecord, AgentWithPresence } from "../ports/agents.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import {
  agentUrl,
  type CardExtension,
  type CardSecurity,
  cardSecurity,
  type CardSettings,
  COMMON_EXTENSIONS,
  relayInterfaces,
} from "./card-interfaces.ts";

type Json = Readonly<Record<string, unknown>>;

/** The default modes: every agent can read plain text. */
export const TEXT_MODES: readonly string[] = ["text/plain"];

const INTERFACE_MEMBERS = ["url", "protocolBinding", "protocolVersion", "tenant"];
const EXTENSION_MEMBERS = ["uri", "description", "required", "params"];
const SKILL_MEMBERS = ["id", "name", "description", "tags", "examples", "inputModes", "outputModes"];

/**
 * The card that the relay serves, in A2A 1.0: the owner's card, completed with what A2A requires. The relay's
 * interfaces come first, because callers go through the relay. It drops members that 1.0 does not define, because
 * strict readers refuse a card for them, and signatures, because they cover another text. The store keeps the owner's
 * card unchanged.
 */
export function serveCard(
  found: AgentWithPresence,
  settings: CardSettings,
  nowMs: number,
  written: AgentCard = found.agent.card,
): AgentCard {
  const { agent } = found;
  const own = readCard(written);
  const publicUrl = settings.publicUrl();
  const url = agentUrl(publicUrl, agent.tenant, agent.id);
  return {
    name: textIn(own, "name") ?? agent.displayName,
    description: textIn(own, "description") ?? `${agent.displayName}, reachable through this relay`,
    supportedInterfaces: [
      ...relayInterfaces({ rpcUrl: url, restUrl: url, agentId: agent.id, tenant: agent.tenant }, settings),
      ...(agent.isDirect ? interfacesIn(own) : []),
    ],
    ...(isObject(own["provider"]) ? { provider: pick(own["provider"], ["url", "organization"]) } : {}),
    version: textIn(own, "version") ?? "1.0.0",
    documentationUrl: textIn(own, "documentationUrl") ?? publicUrl + operations.service.docs.path,
    capabilities: capabilitiesOf(found, own, settings, nowMs),
    ...cardSecurity(settings, agent.isDirect ? securityIn(own) : {}),
    defaultInputModes: textsIn(own, "defaultInputModes") ?? TEXT_MODES,
    defaultOutputModes: textsIn(own, "defaultOutputModes") ?? TEXT_MODES,
    skills: skillsOf(agent, own),
    ...(textIn(own, "iconUrl") === undefined ? {} : { iconUrl: own["iconUrl"] }),
  };
}

/** The card for authenticated callers. Members that `extended` lacks come from the public card. */
export function serveExtendedCard(
  found: AgentWithPresence,
  extended: AgentCard,
  settings: CardSettings,
  nowMs: number,
): AgentCard {
  return serveCard(found, settings, nowMs, { ...readCard(found.agent.card), ...readCard(extended) });
}

/** Whether the owner's card names interfaces of the agent itself, past the relay. */
export function namesInterfaces(written: AgentCard): boolean {
  return interfacesIn(readCard(written)).length > 0;
}

/** The agent as `viewer` may see it. */
export function viewAgent(
  found: AgentWithPresence,
  endpoint: PushEndpoint | undefined,
  at: { readonly nowMs: number; readonly settings: CardSettings; readonly viewer: Principal },
): AgentView {
  const { agent, lastSeenAtMs } = found;
  return {
    agent_id: agent.id,
    display_name: agent.displayName,
    slug: slugOf(agent.id),
    aliases: agent.aliases,
    skills: agent.skills,
    representative_queries: agent.representativeQueries,
    // Hidden from other agents: knowing a callback URL is often enough to post to it.
    ...(agent.callbackUrl === null || !speaksFor(at.viewer, agent.id)
      ? {}
      : { callback_url: agent.callbackUrl }),
    ...(endpoint?.state === "active" ? { push: endpoint.mode } : {}),
    ...(agent.ttlMs === null ? {} : { ttl_ms: agent.ttlMs }),
    presence: presenceOf(found, at.nowMs),
    ...(agent.publicKey === null ? {} : { pubkey_b58: agent.publicKey, custodial: agent.isCustodial }),
    registered_at: formatInstant(agent.registeredAtMs),
    ...(lastSeenAtMs === null ? {} : { last_seen_at: formatInstant(lastSeenAtMs) }),
    agent_card: serveCard(found, at.settings, at.nowMs),
  };
}

/** An agent is online for `ttlMs` after the relay last heard from it. The mailbox stays open when it is offline. */
export function presenceOf({ agent, lastSeenAtMs }: AgentWithPresence, nowMs: number): Presence {
  if (agent.ttlMs === null || lastSeenAtMs === null) return "unknown";
  return nowMs <= lastSeenAtMs + agent.ttlMs ? "online" : "offline";
}

/** When the agent's presence last changed. */
export function presentSinceMs({ agent, lastSeenAtMs }: AgentWithPresence, nowMs: number): number {
  if (lastSeenAtMs === null) return agent.registeredAtMs;
  const leftAtMs = lastSeenAtMs + (agent.ttlMs ?? Number.POSITIVE_INFINITY) + 1;
  return leftAtMs <= nowMs ? leftAtMs : lastSeenAtMs;
}

/** The relay streams and pushes for every agent, unless the owner's card switches that off. */
function capabilitiesOf(
  found: AgentWithPresence,
  own: AgentCard,
  settings: CardSettings,
  nowMs: number,
): Json {
  const { agent } = found;
  const { streams, pushes, hasExtendedCard } = termsOf(own);
  const { capabilities } = own;
  const declared = isObject(capabilities) ? objectsIn(capabilities, "extensions") : [];
  const theirs = declared.filter(({ uri }) => typeof uri === "string" && !isOurs(uri));
  return {
    streaming: streams,
    pushNotifications: pushes,
    ...(agent.extendedCard !== null || hasExtendedCard ? { extendedAgentCard: true } : {}),
    extensions: [
      ...theirs.map((extension) => pick(extension, EXTENSION_MEMBERS)),
      ...COMMON_EXTENSIONS,
      availability(found, settings, nowMs),
    ],
  };
}

function availability(
  found: AgentWithPresence,
  { messageTtlMs }: CardSettings,
  nowMs: number,
): CardExtension {
  const { lastSeenAtMs } = found;
  return {
    uri: AVAILABILITY_EXTENSION,
    description: "Whether the agent is there; messages wait for it while it is not",
    required: false,
    params: {
      presence: presenceOf(found, nowMs),
      ...(lastSeenAtMs === null ? {} : { last_seen_at: formatInstant(lastSeenAtMs) }),
      offline_delivery: true,
      message_ttl_ms: messageTtlMs,
    },
  };
}

/** Only the relay may declare its own extensions. */
function isOurs(uri: unknown): boolean {
  return (RELAY_EXTENSIONS as readonly unknown[]).includes(uri);
}

/** The skills of the card, or else of the registration. */
function skillsOf({ skills, isDirect }: AgentRecord, own: Json): readonly Json[] {
  const written = objectsIn(own, "skills").filter((skill) => isText(skill["id"]) || isText(skill["name"]));
  const members = isDirect ? [...SKILL_MEMBERS, "securityRequirements"] : SKILL_MEMBERS;
  return (written.length === 0 ? skills : written).map((skill) => completeSkill(pick(skill, members)));
}

function completeSkill(skill: Json | Skill): Json {
  const { id, name, description, tags, ...rest } = skill as Json;
  const called = isText(name) ? name : id;
  return {
    id: isText(id) ? id : name,
    name: called,
    description: isText(description) ? description : called,
    tags: tagsOf(tags),
    ...rest,
  };
}

/** Registrations have tags with values; cards have lists of words. */
function tagsOf(tags: unknown): readonly string[] {
  if (Array.isArray(tags)) return (tags as readonly unknown[]).filter(isText);
  return isObject(tags) ? Object.entries(tags).map(([key, value]) => `${key}:${String(value)}`) : [];
}

function interfacesIn(own: Json): readonly Json[] {
  return objectsIn(own, "supportedInterfaces")
    .filter(({ url }) => isText(url))
    .map((one) => ({
      protocolBinding: "JSONRPC",
      protocolVersion: "1.0",
      ...pick(one, INTERFACE_MEMBERS),
    }));
}

function securityIn(own: Json): CardSecurity {
  const { securitySchemes } = own;
  return {
    ...(isObject(securitySchemes) ? { securitySchemes } : {}),
    securityRequirements: objectsIn(own, "securityRequirements"),
  };
}

function pick(object: Json, members: readonly string[]): Json {
  return Object.fromEntries(Object.entries(object).filter(([name]) => members.includes(name)));
}

function objectsIn(object: Json, member: string): readonly Json[] {
  const value = object[member];
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isObject) : [];
}

function textsIn(object: Json, member: string): readonly string[] | undefined {
  const value = object[member];
  const texts = Array.isArray(value) ? (value as readonly unknown[]).filter(isText) : [];
  return texts.length === 0 ? undefined : texts;
}

function textIn(object: Json, member: string): string | undefined {
  const value = object[member];
  return isText(value) ? value : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The id in characters that are safe in file names and URL segments. */
function slugOf(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").replaceAll(/^_+|_+$/g, "") || "agent";
}
