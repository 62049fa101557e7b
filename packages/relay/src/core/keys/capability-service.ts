import {
  type AgentId,
  CapabilitiesQuerySchema,
  type CapabilitiesResponse,
  CapabilityGrantRequestSchema,
  CapabilityRevokeRequestSchema,
  type CapabilityRevoked,
  type CapabilityUsage,
  type CapabilityUsageResponse,
  type CapabilityView,
  formatInstant,
  LIMITS,
  parseRecordId,
  RelayError,
  toBase58,
} from "@a2a-relay/protocol";
import type { Directory } from "../agents/directory.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Identifiers, Randomness } from "../ports/ids.ts";
import type { EventDraft } from "../ports/journal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import { parseAction } from "../access/capability-demand.ts";
import { pairedAction } from "../rules/paired-action.ts";
import type { CapabilityRecord } from "../ports/access.ts";
import { normalizeScope, usesLeft, widening } from "../access/capability-scope.ts";
import { CAPABILITY_DOMAIN, type CapabilityValidity, mint } from "../access/capability-token.ts";
import { isPublicKey, type SigningKey } from "../rules/ed25519.ts";
import { parseExpiry } from "../access/expiry.ts";
import type { Guard } from "../access/guard.ts";
import { actorName, type AgentPrincipal, type Principal } from "../access/principal.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

export interface CapabilityParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly randomness: Randomness;
  readonly guard: Guard;
  readonly identity: SigningKey;
  readonly validity: CapabilityValidity;
}

const NONCE_BYTES = 16;

const parseGrant = parserOf(CapabilityGrantRequestSchema, "grant");
const parseRevoke = parserOf(CapabilityRevokeRequestSchema, "revoke");
const parseQuery = parserOf(CapabilitiesQuerySchema, "query");

/** An agent's id and its public key, by which the relay compares agents. */
interface Keyed {
  readonly agentId: AgentId;
  readonly key: string;
}

/** What the caller asks for, with public keys instead of names. */
type Grant = Pick<CapabilityRecord, "action" | "writtenAction" | "scope" | "expiresAtMs">;

/** Grants, revokes and lists capabilities. Operators grant; agents delegate capabilities that are delegable. */
export class CapabilityService {
  readonly #parts: CapabilityParts;

  constructor(parts: CapabilityParts) {
    this.#parts = parts;
  }

  async grant(principal: Principal, input: unknown): Promise<CapabilityView> {
    const { store, guard, clock } = this.#parts;
    const request = parseGrant(input);
    await guard.authorize(principal, "capabilities.grant");
    const scope = normalizeScope(request.scope);
    const expiresAtMs = parseExpiry(request.expires_at, clock.nowMs());
    const asked = { writtenAction: request.action, scope, expiresAtMs };
    return decideAndCommit(store, async () => {
      const { grant, parent } = await this.#permitted(principal, asked);
      const subject = await this.#agentOf(principal.tenant, request.subject, "subject");
      if (principal.kind === "agent" && subject.agentId === principal.agentId) {
        await this.#denyGrant(principal, `${subject.agentId} may not grant a capability to itself`);
      }
      const ended = await this.#makeRoom(principal.tenant, subject, grant.action);
      const capability = this.#minted(principal, subject, grant, parent);
      const by = { actor: capability.grantedBy, atMs: capability.issuedAtMs };
      const changes = {
        tenant: principal.tenant,
        // The parent is unchanged. Its version makes the commit clash if it was revoked or spent meanwhile.
        capabilities: [capability, ...(parent === undefined ? [] : [parent]), ...ended],
        events: [capabilityEvent("capability.granted", capability, by)],
      };
      return { changes, answer: viewCapability(capability) };
    });
  }

  /** From the next check on it is invalid, and so is what was delegated from it. */
  async revoke(principal: Principal, input: unknown): Promise<CapabilityRevoked> {
    const { store, guard, clock } = this.#parts;
    const { id } = parseRevoke(input);
    await guard.authorize(principal, "capabilities.revoke");
    return decideAndCommit<CapabilityRevoked>(store, async () => {
      const capability = await this.#visible(principal, id);
      if (capability.revokedAtMs !== null) return { changes: undefined, answer: { id, revoked: false } };
      const nowMs = clock.nowMs();
      const revoked = { ...capability, revokedAtMs: nowMs };
      const by = { actor: actorName(principal), atMs: nowMs };
      const events = [capabilityEvent("capability.revoked", revoked, by)];
      return {
        changes: { tenant: principal.tenant, capabilities: [revoked], events },
        answer: { id, revoked: true },
      };
    });
  }

  /** Includes revoked and expired ones. Agents see those that they hold or granted. */
  async list(principal: Principal, input: unknown): Promise<CapabilitiesResponse> {
    const { page, ...more } = await this.#page(principal, input);
    return { capabilities: page.map(viewCapability), ...more };
  }

  /** The same list, with the uses left and whether each is valid now. */
  async usage(principal: Principal, input: unknown): Promise<CapabilityUsageResponse> {
    const { page, ...more } = await this.#page(principal, input);
    const grants = [];
    for (const capability of page) grants.push(viewUsage(capability, await this.#isEffective(capability)));
    return { grants, ...more };
  }

  async #page(
    principal: Principal,
    input: unknown,
  ): Promise<{ readonly page: readonly CapabilityRecord[]; readonly pageToken?: string }> {
    const { store, guard } = this.#parts;
    const query = parseQuery(input);
    await guard.authorize(principal, "capabilities.read");
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const { tenant } = principal;
    const party = principal.kind === "agent" ? await this.#partyOf(principal) : undefined;
    const page = await store.capabilities.list({ tenant, party, afterId: query.page_token ?? "", limit });
    const last = page.length === limit ? page.at(-1) : undefined;
    return { page, ...(last === undefined ? {} : { pageToken: last.id }) };
  }

  async #partyOf(
    principal: AgentPrincipal,
  ): Promise<{ readonly subjectKey: string; readonly grantedBy: string }> {
    const key = await publicKeyOf(this.#parts.store, principal.tenant, principal.agentId);
    return { subjectKey: key ?? "", grantedBy: principal.agentId };
  }

  /** An agent that neither holds nor granted it gets the same answer as for a missing one. */
  async #visible(principal: Principal, id: string): Promise<CapabilityRecord> {
    const { store, guard } = this.#parts;
    const capability = await store.capabilities.get(principal.tenant, parseRecordId(id, "id"));
    const unknown = new RelayError(
      "not_found",
      "there is no capability of that id; GET /capabilities lists all",
    );
    if (principal.kind === "operator") {
      if (capability === undefined) throw unknown;
      return capability;
    }
    const { subjectKey, grantedBy } = await this.#partyOf(principal);
    if (capability?.subjectKey === subjectKey || capability?.grantedBy === grantedBy) return capability;
    return guard.refuse(principal, "capabilities.revoke", {}, unknown);
  }

  async #isEffective(capability: CapabilityRecord): Promise<boolean> {
    const { store, validity } = this.#parts;
    if ((await validity.standing(capability)).fault !== undefined) return false;
    return (await store.agents.withKey(capability.tenant, capability.subjectKey)) !== undefined;
  }

  /** An operator may grant anything; an agent, what it holds, if that is delegable. */
  async #permitted(
    principal: Principal,
    asked: Omit<Grant, "action">,
  ): Promise<{ readonly grant: Grant; readonly parent: CapabilityRecord | undefined }> {
    const { tenant } = principal;
    if (principal.kind === "operator") {
      const action = await this.#actionOf(tenant, asked.writtenAction);
      return { grant: { ...asked, action }, parent: undefined };
    }
    const holderKey = await publicKeyOf(this.#parts.store, tenant, principal.agentId);
    const action = await this.#actionOf(tenant, asked.writtenAction).catch(unlessUnknown);
    let why = `${principal.agentId} holds no capability "${asked.writtenAction}" that may be passed on`;
    if (holderKey !== undefined && action !== undefined) {
      for (const parent of await this.#parts.store.capabilities.of(tenant, holderKey, action)) {
        const { fault } = await this.#parts.validity.standing(parent);
        if (fault !== undefined || parent.scope.delegable !== true) continue;
        const wider = widening(parent, asked);
        if (wider === undefined) return { grant: { ...asked, action }, parent };
        why = `what is passed on must not be wider than ${parent.id}: ${wider}`;
      }
    }
    return this.#denyGrant(principal, why);
  }

  #denyGrant(principal: Principal, why: string): Promise<never> {
    const error = new RelayError("permission_denied", why);
    return this.#parts.guard.refuse(principal, "capabilities.grant", {}, error);
  }

  #minted(
    principal: Principal,
    subject: Keyed,
    grant: Grant,
    parent: CapabilityRecord | undefined,
  ): CapabilityRecord {
    const { ids, clock, randomness, identity } = this.#parts;
    const nonce = new Uint8Array(NONCE_BYTES);
    randomness(nonce);
    const draft = {
      tenant: principal.tenant,
      id: ids.capability(),
      nonce: toBase58(nonce),
      subject: subject.agentId,
      subjectKey: subject.key,
      ...grant,
      grantedBy: actorName(principal),
      parentId: parent?.id ?? null,
      issuedAtMs: clock.nowMs(),
      revokedAtMs: null,
      used: 0,
      version: 0,
    };
    return mint(draft, identity);
  }

  /**
   * Every check reads all that are not revoked, so their number is limited. At the limit it answers the expired ones
   * as revoked.
   */
  async #makeRoom(tenant: string, subject: Keyed, action: string): Promise<readonly CapabilityRecord[]> {
    const { store, clock } = this.#parts;
    const nowMs = clock.nowMs();
    const held = await store.capabilities.of(tenant, subject.key, action);
    if (held.length < LIMITS.capabilitiesOfActionMax) return [];
    const live = held.filter(({ expiresAtMs }) => expiresAtMs === null || nowMs <= expiresAtMs);
    if (live.length < LIMITS.capabilitiesOfActionMax) {
      return held.filter((each) => !live.includes(each)).map((each) => ({ ...each, revokedAtMs: nowMs }));
    }
    throw new RelayError(
      "resource_exhausted",
      `${subject.agentId} holds ${live.length} capabilities for this action, the most there may be; revoke some first`,
      { details: { limit: LIMITS.capabilitiesOfActionMax } },
    );
  }

  async #actionOf(tenant: string, written: string): Promise<string> {
    const action = parseAction(written);
    if ("plain" in action) return action.plain;
    // A public key needs no registered agent.
    if (isPublicKey(action.peer)) return pairedAction(action.verb, action.peer);
    return pairedAction(action.verb, (await this.#agentOf(tenant, action.peer, "action")).key);
  }

  /** A text that is a public key means that key, even if an agent has it as its name. */
  async #agentOf(tenant: string, text: string, field: string): Promise<Keyed> {
    const { store, directory } = this.#parts;
    if (isPublicKey(text)) {
      const owner = await store.agents.withKey(tenant, text);
      if (owner !== undefined) return { agentId: owner, key: text };
      throw new RelayError("unknown_agent", `${field}: no agent is registered with the public key ${text}`);
    }
    const agentId = await directory.resolve(tenant, text, field);
    const key = await publicKeyOf(store, tenant, agentId);
    if (key !== undefined) return { agentId, key };
    throw new RelayError(
      "wrong_state",
      `${field}: ${agentId} has no public key, because it was registered by an older relay; it must register again`,
    );
  }
}

/** No agent holds a capability for an unknown agent. */
function unlessUnknown(reason: unknown): undefined {
  const { code } = RelayError.from(reason);
  if (code !== "unknown_agent" && code !== "ambiguous_agent" && code !== "wrong_state") throw reason;
}

/** All that the signature covers, so that a client with the relay's public key can verify it. */
function viewCapability(capability: CapabilityRecord): CapabilityView {
  const { parentId, expiresAtMs, revokedAtMs } = capability;
  return {
    id: capability.id,
    domain: CAPABILITY_DOMAIN,
    tenant: capability.tenant,
    nonce: capability.nonce,
    subject: capability.subject,
    subject_pubkey_b58: capability.subjectKey,
    action: capability.action,
    written_action: capability.writtenAction,
    scope: capability.scope,
    granted_by: capability.grantedBy,
    ...(parentId === null ? {} : { delegated_from: parentId }),
    issued_at: formatInstant(capability.issuedAtMs),
    ...(expiresAtMs === null ? {} : { expires_at: formatInstant(expiresAtMs) }),
    ...(revokedAtMs === null ? {} : { revoked_at: formatInstant(revokedAtMs) }),
    signature_b58: capability.signature,
  };
}

function viewUsage(capability: CapabilityRecord, effective: boolean): CapabilityUsage {
  const { expiresAtMs, scope, used } = capability;
  const remaining = usesLeft(capability);
  return {
    id: capability.id,
    subject: capability.subject,
    subject_pubkey_b58: capability.subjectKey,
    action: capability.action,
    written_action: capability.writtenAction,
    scope,
    ...(expiresAtMs === null ? {} : { expires_at: formatInstant(expiresAtMs) }),
    revoked: capability.revokedAtMs !== null,
    effective,
    ...(remaining === undefined ? {} : { budget: { max_uses: scope.max_uses ?? 0, used, remaining } }),
  };
}

function capabilityEvent(
  type: "capability.granted" | "capability.revoked",
  capability: CapabilityRecord,
  by: { readonly actor: string; readonly atMs: number },
): EventDraft {
  const { id, subjectKey, action, scope, parentId, expiresAtMs } = capability;
  const granted = {
    subject_pubkey_b58: subjectKey,
    scope,
    ...(parentId === null ? {} : { delegated_from: parentId }),
    ...(expiresAtMs === null ? {} : { expires_at: formatInstant(expiresAtMs) }),
  };
  return {
    type,
    ...by,
    agentId: capability.subject,
    messageId: null,
    taskId: null,
    threadId: null,
    data: { capability_id: id, action, ...(type === "capability.granted" ? granted : {}) },
  };
}
