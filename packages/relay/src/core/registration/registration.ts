import { type AgentId, LIMITS, quote, type RegisterRequest, RelayError } from "@a2a-relay/protocol";
import { isPublicKey } from "../rules/ed25519.ts";
import type { EgressPolicy } from "../rules/egress-policy.ts";
import type { Identity } from "../agents/agent-identity.ts";
import { readAgentId } from "../rules/agent-name.ts";
import type { AgentRecord } from "../ports/agents.ts";
import type { EventDraft } from "../ports/journal.ts";
import { bytesAsJson } from "../mechanisms/stored-json.ts";

/** An agent that registers. */
export interface Registrant {
  readonly tenant: string;
  readonly id: AgentId;
  readonly known: AgentRecord | undefined;
  readonly identity: Identity;
}

/** Undefined when the agent was never registered, or was removed. */
export function registeredBefore(known: AgentRecord | undefined): AgentRecord | undefined {
  return known?.removedAtMs === null ? known : undefined;
}

/** The record after a registration. Absent fields stay unchanged. */
export function fillRecord(
  { tenant, id, known, identity }: Registrant,
  request: RegisterRequest,
  { nowMs, egress }: { readonly nowMs: number; readonly egress: EgressPolicy },
): AgentRecord {
  const before = registeredBefore(known);
  const card = request.card ?? request.agent_card ?? before?.card ?? {};
  const cardName = typeof card["name"] === "string" && card["name"] !== "" ? card["name"] : undefined;
  const callbackUrl =
    request.callback_url === undefined
      ? (before?.callbackUrl ?? null)
      : readCallback(request.callback_url, egress);
  const record = {
    tenant,
    id,
    displayName: request.display_name ?? before?.displayName ?? cardName ?? id,
    aliases: (request.aliases ?? before?.aliases ?? []).map((alias) => readAgentId(alias, "aliases")),
    card,
    skills: request.skills ?? before?.skills ?? [],
    representativeQueries: request.representative_queries ?? before?.representativeQueries ?? [],
    callbackUrl,
    ttlMs: request.ttl_ms === undefined ? (before?.ttlMs ?? null) : request.ttl_ms,
    publicKey: identity.publicKey,
    isCustodial: identity.isCustodial,
    registeredAtMs: before?.registeredAtMs ?? nowMs,
    othersBeforeMs: before?.othersBeforeMs ?? (known === undefined ? 0 : nowMs),
    removedAtMs: null,
    extendedCard:
      request.extended_card === undefined ? (before?.extendedCard ?? null) : request.extended_card,
    isDirect: request.direct ?? before?.isDirect ?? false,
    version: known?.version ?? 0,
  };
  assertNoForeignKey(record);
  assertRecordBytes(record);
  return record;
}

/** A public key names the agent that holds it, so it may not be another agent's name. */
function assertNoForeignKey({ id, aliases, displayName, publicKey }: AgentRecord): void {
  const taken = [id, ...aliases, displayName].find((name) => name !== publicKey && isPublicKey(name));
  if (taken === undefined) return;
  throw new RelayError(
    "invalid_argument",
    `registration: ${quote(taken)} is a public key and not this agent's; choose another name`,
  );
}

/** Counts the fields that stay unchanged too. */
function assertRecordBytes(record: AgentRecord): void {
  const limit = LIMITS.registrationBytesMax;
  const bytes = bytesAsJson(record);
  if (bytes <= limit) return;
  throw new RelayError(
    "too_large",
    `registration: an agent says at most ${limit} bytes of itself as JSON, this would be ${bytes}`,
    { details: { limit } },
  );
}

/** Kept unchanged. Its host name is resolved for every call. */
function readCallback(url: string | null, egress: EgressPolicy): string | null {
  if (url !== null) egress.checkUrl(url, "callback_url");
  return url;
}

export function agentEvent(
  type: "agent.registered" | "agent.updated" | "agent.removed",
  agentId: AgentId,
  by: { readonly actor: string; readonly atMs: number },
  data: Readonly<Record<string, unknown>>,
): EventDraft {
  return { type, ...by, agentId, messageId: null, taskId: null, threadId: null, data };
}
