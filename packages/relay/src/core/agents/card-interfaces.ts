import {
  a2aEndpoints,
  IDEMPOTENCY_KEY_EXTENSION,
  pathOf,
  STREAM_RESUME_EXTENSION,
} from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../access/principal.ts";

/** The settings for the parts that the relay adds to every card: interfaces, extensions and security. */
export interface CardSettings {
  /** The relay's public address; it is known once the relay listens. */
  readonly publicUrl: () => string;
  /** The address of gRPC as host:port; absent or undefined when it is off. */
  readonly grpcUrl?: () => string | undefined;
  /** Whether callers need a key. */
  readonly hasKeys?: boolean;
  /** How long the relay keeps unread messages. */
  readonly messageTtlMs: number;
}

export interface CardInterface {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
  /** The A2A tenant field: the agent's id, where one address serves all agents. */
  readonly tenant?: string;
}

/** The addresses of the two bindings over HTTP. */
export interface CardAddresses {
  readonly rpcUrl: string;
  readonly restUrl: string;
  readonly agentId: string;
  /** The organisation that it belongs to. */
  readonly tenant: string;
}

/** In order of preference: the newest version first. Older clients use the last two. */
export function relayInterfaces(
  { rpcUrl, restUrl, agentId, tenant }: CardAddresses,
  { grpcUrl }: CardSettings,
): readonly CardInterface[] {
  const grpc = grpcUrl?.();
  return [
    { url: rpcUrl, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url: restUrl, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    ...(grpc === undefined
      ? []
      : [{ url: grpc, protocolBinding: "GRPC", protocolVersion: "1.0", tenant: a2aTenant(tenant, agentId) }]),
    { url: rpcUrl, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    { url: restUrl, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
  ];
}

/** The A2A tenant field where no path names the organisation: `agent`, or `organisation/agent`. */
function a2aTenant(tenant: string, agentId: string): string {
  return tenant === DEFAULT_TENANT ? agentId : `${tenant}/${agentId}`;
}

/** Reads `agent` or `organisation/agent`. Only names that are URLs contain a slash. */
export function readA2aTenant(field: unknown): {
  readonly tenant: string | undefined;
  readonly agentName: string | undefined;
} {
  if (typeof field !== "string" || field === "") return { tenant: undefined, agentName: undefined };
  const [, tenant, agentName] = /^([^/:]+)\/(.+)$/s.exec(field) ?? [];
  return tenant === undefined ? { tenant, agentName: field } : { tenant, agentName };
}

/** The agent's own A2A address. */
export function agentUrl(publicUrl: string, tenant: string, agentId: string): string {
  return tenantUrl(publicUrl, tenant) + pathOf(a2aEndpoints.a2a.agent, { agent_id: agentId }, segment);
}

export function tenantUrl(publicUrl: string, tenant: string): string {
  return tenant === DEFAULT_TENANT ? publicUrl : `${publicUrl}/t/${segment(tenant)}`;
}

/** Paths may contain @ and :, and ids are easier to read with them. */
function segment(text: string): string {
  return encodeURIComponent(text).replaceAll("%40", "@").replaceAll("%3A", ":");
}

export interface CardExtension {
  readonly uri: string;
  readonly description: string;
  readonly required: boolean;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** The extensions that the relay supports for every agent. No client needs to use them. */
export const COMMON_EXTENSIONS: readonly CardExtension[] = [
  {
    uri: STREAM_RESUME_EXTENSION,
    description: "Events of streams have ids; a subscription with Last-Event-ID brings what was missed",
    required: false,
  },
  {
    uri: IDEMPOTENCY_KEY_EXTENSION,
    description: "A message sent again with the same Idempotency-Key is the same message",
    required: false,
  },
];

type Json = Readonly<Record<string, unknown>>;

/** The security members of a card; an absent member requires nothing. */
export interface CardSecurity {
  readonly securitySchemes?: Json;
  readonly securityRequirements?: readonly Json[];
}

const SCHEME_NAME = "relayKey";
const SCHEME: Json = {
  httpAuthSecurityScheme: {
    description: "A key of this relay; its operator makes them",
    scheme: "Bearer",
  },
};

/** The relay's own requirements. `owner` has the agent's, given only where the card shows the agent's own address. */
export function cardSecurity({ hasKeys = false }: CardSettings, owner: CardSecurity = {}): CardSecurity {
  const schemes = { ...owner.securitySchemes, ...(hasKeys ? { [SCHEME_NAME]: SCHEME } : {}) };
  const theirs = owner.securityRequirements ?? [];
  const ours = hasKeys ? [{ schemes: { [SCHEME_NAME]: { list: [] } } }] : nothingBeside(theirs);
  const requirements = [...ours, ...theirs];
  return {
    ...(Object.keys(schemes).length === 0 ? {} : { securitySchemes: schemes }),
    ...(requirements.length === 0 ? {} : { securityRequirements: requirements }),
  };
}

/** An explicit empty requirement: without it, the owner's requirements would apply to the relay too. */
function nothingBeside(theirs: readonly Json[]): readonly Json[] {
  return theirs.length === 0 ? [] : [{ schemes: {} }];
}
