import {
  type AgentCard,
  type AgentView,
  AVAILABILITY_EXTENSION,
  formatInstant,
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

/** Plain text, because every agent that can read mail can read that. */
export const TEXT_MODES: readonly string[] = ["text/plain"];

const INTERFACE_MEMBERS = ["url", "protocolBinding", "protocolVersion", "tenant"];
const EXTENSION_MEMBERS = ["uri", "description", "required", "params"];
const SKILL_MEMBERS = ["id", "name", "description", "tags", "examples", "inputModes", "outputModes"];

/**
 * The card as it is served, in A2A 1.0: what its owner wrote, completed with what A2A requires, and with the relay in
 * front, because that is where callers go. Members that 1.0 does not know are left out, as strict readers refuse a card
 * for them; so are signatures, which hold only for the very card that was signed. Both are in the card as it was
 * written, which stays in the store.
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
    documentationUrl: textIn(own, "documentationUrl") ?? `${publicUrl}/docs`,
    capabilities: capabilitiesOf(found, own, settings, nowMs),
    ...cardSecurity(settings, agent.isDirect ? securityIn(own) : {}),
    defaultInputModes: textsIn(own, "defaultInputModes") ?? TEXT_MODES,
    defaultOutputModes: textsIn(own, "defaultOutputModes") ?? TEXT_MODES,
    skills: skillsOf(agent, own),
    ...(textIn(own, "iconUrl") === undefined ? {} : { iconUrl: own["iconUrl"] }),
  };
}

/** The same of what only callers who are known are shown; what it leaves out is as in the other card. */
export function serveExtendedCard(
  found: AgentWithPresence,
  extended: AgentCard,
  settings: CardSettings,
  nowMs: number,
): AgentCard {
  return serveCard(found, settings, nowMs, { ...readCard(found.agent.card), ...readCard(extended) });
}

/** Whether the card as it was written tells where its owner can be reached past the relay. */
export function namesInterfaces(written: AgentCard): boolean {
  return interfacesIn(readCard(written)).length > 0;
}

/** An agent as the API shows it to that viewer. */
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
    // Whoever knows the address of a receiver can often post to it, so it is not for other agents.
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

/** TTL says how long an agent counts as there after it was last heard; it never closes a mailbox. */
export function presenceOf({ agent, lastSeenAtMs }: AgentWithPresence, nowMs: number): Presence {
  if (agent.ttlMs === null || lastSeenAtMs === null) return "unknown";
  return nowMs <= lastSeenAtMs + agent.ttlMs ? "online" : "offline";
}

/** When the agent's presence became what it is now. */
export function presentSinceMs({ agent, lastSeenAtMs }: AgentWithPresence, nowMs: number): number {
  if (lastSeenAtMs === null) return agent.registeredAtMs;
  const leftAtMs = lastSeenAtMs + (agent.ttlMs ?? Number.POSITIVE_INFINITY) + 1;
  return leftAtMs <= nowMs ? leftAtMs : lastSeenAtMs;
}

/** The relay streams and pushes for every agent, unless its owner does not want that. */
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

/** Whether the agent is there, and what happens to messages while it is not. */
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

/** Those that only the relay can speak for. */
function isOurs(uri: unknown): boolean {
  return (RELAY_EXTENSIONS as readonly unknown[]).includes(uri);
}

/** Those of the card; else those that were registered beside it. */
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

/** Registrations have tags with values, which cards write as words. */
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

/** The id as a file name or URL segment would spell it. */
function slugOf(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").replaceAll(/^_+|_+$/g, "") || "agent";
}
