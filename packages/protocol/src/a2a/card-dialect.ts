import type { AgentCard } from "../model/agent.ts";
import {
  definedMembers,
  isJsonObject,
  type JsonObject,
  mapMembers,
  memberNames,
  renameMembers,
  withoutMembers,
} from "./json-members.ts";
import {
  readSecurityRequirement,
  readSecurityScheme,
  writeSecurityRequirement,
  writeSecurityScheme,
} from "./security-dialect.ts";

/**
 * Cards: 1.0 lists all interfaces alike; 0.3 has a main interface and additional ones, and 0.1 and 0.2 share that
 * shape. A signature covers one shape, so a converted card loses its signatures.
 */
const V03_PROTOCOL_VERSION = "0.3.0";
const DEFAULT_BINDING = "JSONRPC";

/** Members that only cards of 0.3 have. */
const V03_MEMBERS = [
  "url",
  "preferredTransport",
  "additionalInterfaces",
  "protocolVersion",
  "supportsAuthenticatedExtendedCard",
  "security",
];

const NAMES = memberNames({
  additional_interfaces: "additionalInterfaces",
  default_input_modes: "defaultInputModes",
  default_output_modes: "defaultOutputModes",
  documentation_url: "documentationUrl",
  icon_url: "iconUrl",
  preferred_transport: "preferredTransport",
  protocol_version: "protocolVersion",
  security_requirements: "securityRequirements",
  security_schemes: "securitySchemes",
  supported_interfaces: "supportedInterfaces",
  supports_authenticated_extended_card: "supportsAuthenticatedExtendedCard",
});
const INTERFACE_NAMES = memberNames({
  protocol_binding: "protocolBinding",
  protocol_version: "protocolVersion",
  transport: "protocolBinding",
});
const CAPABILITY_NAMES = memberNames({
  extended_agent_card: "extendedAgentCard",
  push_notifications: "pushNotifications",
});
const SKILL_NAMES = memberNames({
  input_modes: "inputModes",
  output_modes: "outputModes",
  security_requirements: "securityRequirements",
  security: "securityRequirements",
});

/** A card of any version as a card of 1.0. */
export function readCard(card: AgentCard): AgentCard {
  const named = renameMembers(card, NAMES);
  const isOlder = V03_MEMBERS.some((name) => Object.hasOwn(named, name));
  const plain = isOlder ? withoutMembers(fromV03(named), "signatures") : named;
  return mapMembers(plain, {
    supportedInterfaces: (all) => mapList(all, (one) => renameMembers(one, INTERFACE_NAMES)),
    capabilities: (value) => (isJsonObject(value) ? renameMembers(value, CAPABILITY_NAMES) : value),
    securitySchemes: (schemes) => mapValues(schemes, readSecurityScheme),
    securityRequirements: (all) => mapList(all, readSecurityRequirement),
    skills: (skills) => mapList(skills, readSkill),
  });
}

/** A card of any version as a card of 0.3, 0.2 and 0.1. */
export function writeV03Card(card: AgentCard): AgentCard {
  return toV03(card, {
    scheme: writeSecurityScheme,
    requirement: writeSecurityRequirement,
  });
}

/** The same in the JSON of 0.3's protocol buffers, which write security as 1.0 does. */
export function writeV03ProtoCard(card: AgentCard): AgentCard {
  return toV03(card, { scheme: (scheme) => scheme, requirement: (requirement) => requirement });
}

interface SecurityNotation {
  readonly scheme: (scheme: JsonObject) => JsonObject;
  readonly requirement: (requirement: JsonObject) => JsonObject;
}

function toV03(card: AgentCard, notation: SecurityNotation): AgentCard {
  const { supportedInterfaces, capabilities, securityRequirements, signatures: _, ...rest } = readCard(card);
  const [main, ...others] = olderFirst(supportedInterfaces);
  const requirements = mapList(securityRequirements, notation.requirement);
  const known = definedMembers({
    protocolVersion: main === undefined ? undefined : versionOf(main),
    url: main?.["url"],
    preferredTransport: main?.["protocolBinding"],
    additionalInterfaces: others.length === 0 ? undefined : others.map(writeInterface),
    capabilities: isJsonObject(capabilities)
      ? withoutMembers(capabilities, "extendedAgentCard")
      : capabilities,
    supportsAuthenticatedExtendedCard: isJsonObject(capabilities)
      ? capabilities["extendedAgentCard"]
      : undefined,
    security: requirements,
  });
  return mapMembers(
    { ...rest, ...known },
    {
      securitySchemes: (schemes) => mapValues(schemes, notation.scheme),
      skills: (skills) => mapList(skills, (skill) => writeSkill(skill, notation)),
    },
  );
}

/** Interfaces for older clients, or all if there are none: an endpoint may accept every dialect. */
function olderFirst(interfaces: unknown): readonly JsonObject[] {
  const all = Array.isArray(interfaces) ? (interfaces as readonly unknown[]).filter(isJsonObject) : [];
  const older = all.filter(({ protocolVersion }) => String(protocolVersion).startsWith("0."));
  return older.length === 0 ? all : older;
}

/** Cards of 0.3 write three numbers. */
function versionOf({ protocolVersion }: JsonObject): string {
  const said = typeof protocolVersion === "string" ? protocolVersion : "";
  if (/^0\.\d+\.\d+$/.test(said)) return said;
  return /^0\.\d+$/.test(said) ? `${said}.0` : V03_PROTOCOL_VERSION;
}

function writeInterface(one: JsonObject): JsonObject {
  return renameMembers(withoutMembers(one, "protocolVersion"), memberNames({ protocolBinding: "transport" }));
}

function writeSkill(skill: JsonObject, notation: SecurityNotation): JsonObject {
  const named = renameMembers(skill, memberNames({ securityRequirements: "security" }));
  return mapMembers(named, { security: (all) => mapList(all, notation.requirement) });
}

function readSkill(skill: JsonObject): JsonObject {
  return mapMembers(renameMembers(skill, SKILL_NAMES), {
    securityRequirements: (all) => mapList(all, readSecurityRequirement),
  });
}

function fromV03(card: JsonObject): JsonObject {
  const { supportedInterfaces, capabilities, security, supportsAuthenticatedExtendedCard, ...rest } = card;
  const listed = Array.isArray(supportedInterfaces) ? (supportedInterfaces as readonly unknown[]) : [];
  const interfaces = [...listed, ...readInterfaces(card)];
  const plain = isJsonObject(capabilities) ? withoutMembers(capabilities, "stateTransitionHistory") : {};
  return definedMembers({
    ...withoutMembers(rest, ...V03_MEMBERS),
    supportedInterfaces: interfaces.length === 0 ? undefined : interfaces,
    capabilities: definedMembers({ extendedAgentCard: supportsAuthenticatedExtendedCard, ...plain }),
    securityRequirements: rest["securityRequirements"] ?? security,
  });
}

/** The main interface, then the others; many cards repeat the main one among the others. */
function readInterfaces(card: JsonObject): readonly JsonObject[] {
  const { url, preferredTransport, additionalInterfaces, protocolVersion } = card;
  if (typeof url !== "string") return [];
  const version = /^\d+\.\d+/.exec(typeof protocolVersion === "string" ? protocolVersion : "")?.[0] ?? "0.3";
  const main = { url, protocolBinding: preferredTransport ?? DEFAULT_BINDING, protocolVersion: version };
  const others = mapList(additionalInterfaces, (one) => ({
    ...renameMembers(one, INTERFACE_NAMES),
    protocolVersion: version,
  }));
  const isOther = (one: JsonObject): boolean =>
    one["url"] !== main.url || one["protocolBinding"] !== main.protocolBinding;
  return [main, ...(Array.isArray(others) ? (others as readonly JsonObject[]).filter(isOther) : [])];
}

function mapList(value: unknown, change: (one: JsonObject) => JsonObject): unknown {
  if (!Array.isArray(value)) return value;
  return (value as readonly unknown[]).map((one) => (isJsonObject(one) ? change(one) : one));
}

function mapValues(value: unknown, change: (one: JsonObject) => JsonObject): unknown {
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, one]): [string, unknown] => [
    name,
    isJsonObject(one) ? change(one) : one,
  ]);
  return Object.fromEntries(entries);
}
