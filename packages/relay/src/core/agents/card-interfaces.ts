import { IDEMPOTENCY_KEY_EXTENSION, STREAM_RESUME_EXTENSION } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../access/principal.ts";

/** What the relay says of itself in every card that it serves. */
export interface CardSettings {
  /** The address the relay tells others; known once it listens. */
  readonly publicUrl: () => string;
  /** Where gRPC listens, as host:port; absent or undefined: it does not. */
  readonly grpcUrl?: () => string | undefined;
  /** Whether callers need a key. */
  readonly hasKeys?: boolean;
  /** How long unread mail waits for its agent. */
  readonly messageTtlMs: number;
}

export interface CardInterface {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
  /** The A2A tenant field: the agent's id, where one address serves all agents. */
  readonly tenant?: string;
}

/** Where the two bindings over HTTP are. */
export interface CardAddresses {
  readonly rpcUrl: string;
  readonly restUrl: string;
  readonly agentId: string;
  /** The organisation that it belongs to. */
  readonly tenant: string;
}

/** The relay's interfaces in the order of preference: the newest version first, older clients take the last two. */
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

/** The A2A tenant field where no path says the organisation: the agent, behind its organisation if that is not ours. */
function a2aTenant(tenant: string, agentId: string): string {
  return tenant === DEFAULT_TENANT ? agentId : `${tenant}/${agentId}`;
}

/** The organisation and the agent that an A2A tenant field names. No name has a slash in it, but for URLs. */
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
  return `${tenantUrl(publicUrl, tenant)}/agents/${segment(agentId)}/a2a`;
}

/** The address below which everything of that tenant is. */
export function tenantUrl(publicUrl: string, tenant: string): string {
  return tenant === DEFAULT_TENANT ? publicUrl : `${publicUrl}/t/${segment(tenant)}`;
}

/** Paths may have these two as they are, and ids that show them are easier to read. */
function segment(text: string): string {
  return encodeURIComponent(text).replaceAll("%40", "@").replaceAll("%3A", ":");
}

export interface CardExtension {
  readonly uri: string;
  readonly description: string;
  readonly required: boolean;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** What the relay does on top of A2A, for whomever it speaks. Nobody has to know of it. */
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

/** What a card asks of callers; an absent member asks for nothing. */
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

/**
 * What the relay asks for, since it is the relay that is called. What the owner asks for holds at its own address, and
 * so is shown beside it only where callers are shown that address.
 */
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

/** That the relay asks for nothing has to be said once somebody else asks for something. */
function nothingBeside(theirs: readonly Json[]): readonly Json[] {
  return theirs.length === 0 ? [] : [{ schemes: {} }];
}
