import { isJsonObject, type JsonObject, mapMembers, memberNames, renameMembers } from "./json-members.ts";

/**
 * Security of cards. 0.3 has the schemes of OpenAPI, with a `type`; 1.0 wraps each scheme in a member named after its
 * type, and lists of scopes in objects.
 */
const WRAPPER_OF_TYPE: ReadonlyMap<unknown, string> = new Map([
  ["apiKey", "apiKeySecurityScheme"],
  ["http", "httpAuthSecurityScheme"],
  ["oauth2", "oauth2SecurityScheme"],
  ["openIdConnect", "openIdConnectSecurityScheme"],
  ["mutualTLS", "mtlsSecurityScheme"],
]);
const SNAKE_WRAPPERS = memberNames({
  api_key_security_scheme: "apiKeySecurityScheme",
  http_auth_security_scheme: "httpAuthSecurityScheme",
  oauth2_security_scheme: "oauth2SecurityScheme",
  open_id_connect_security_scheme: "openIdConnectSecurityScheme",
  mtls_security_scheme: "mtlsSecurityScheme",
});
/** 1.0 has one flow; like the SDKs, take the first of these that is offered. */
const FLOWS = ["authorizationCode", "clientCredentials", "implicit", "password"];

export function readSecurityScheme(scheme: JsonObject): JsonObject {
  const wrapper = WRAPPER_OF_TYPE.get(scheme["type"]);
  if (wrapper === undefined) return renameMembers(scheme, SNAKE_WRAPPERS);
  const { type: _, ...members } = scheme;
  const named =
    wrapper === "apiKeySecurityScheme" ? renameMembers(members, memberNames({ in: "location" })) : members;
  return { [wrapper]: mapMembers(named, wrapper === "oauth2SecurityScheme" ? { flows: oneFlow } : {}) };
}

export function writeSecurityScheme(scheme: JsonObject): JsonObject {
  for (const [type, wrapper] of WRAPPER_OF_TYPE) {
    const members = scheme[wrapper];
    if (!isJsonObject(members)) continue;
    return {
      type,
      ...(type === "apiKey" ? renameMembers(members, memberNames({ location: "in" })) : members),
    };
  }
  return scheme;
}

/** `{bearer: ["read"]}` becomes `{schemes: {bearer: {list: ["read"]}}}`. */
export function readSecurityRequirement(requirement: JsonObject): JsonObject {
  if (isJsonObject(requirement["schemes"])) return requirement;
  const schemes = Object.entries(requirement).map(([name, scopes]): [string, unknown] => [
    name,
    Array.isArray(scopes) ? { list: scopes as readonly unknown[] } : scopes,
  ]);
  return { schemes: Object.fromEntries(schemes) };
}

export function writeSecurityRequirement(requirement: JsonObject): JsonObject {
  const { schemes } = requirement;
  if (!isJsonObject(schemes)) return requirement;
  const scopes = Object.entries(schemes).map(([name, value]): [string, unknown] => [
    name,
    isJsonObject(value) ? (value["list"] ?? []) : value,
  ]);
  return Object.fromEntries(scopes);
}

function oneFlow(flows: unknown): unknown {
  if (!isJsonObject(flows)) return flows;
  const name = FLOWS.find((flow) => isJsonObject(flows[flow]));
  return name === undefined ? flows : { [name]: flows[name] };
}
