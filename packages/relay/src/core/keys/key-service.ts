import {
  type AgentId,
  assertCleanJson,
  formatInstant,
  type KeyCreated,
  KeyCreateRequestSchema,
  type KeyRotated,
  KeyRotateRequestSchema,
  KeysQuerySchema,
  type KeysResponse,
  type KeyUse,
  type KeyView,
  LIMITS,
  parseAgentId,
  quote,
  RelayError,
  type Verb,
  VERBS,
} from "@a2a-relay/protocol";
import { readAgentId } from "../rules/agent-name.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { EventDraft } from "../ports/journal.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import { type KeyRecord, revokedAt, type TenantRecord } from "../ports/access.ts";
import { hasExpired, parseExpiry } from "../access/expiry.ts";
import type { Guard } from "../access/guard.ts";
import type { KeyMaker, KeyScope } from "./key-maker.ts";
import { actorName, type Principal } from "../access/principal.ts";
import { parseTenantName, tenantEvent } from "./tenant-service.ts";
import { agentsNamed } from "../rules/agent-names.ts";

export interface KeyParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly keyMaker: KeyMaker;
}

const parseCreate = parserOf(KeyCreateRequestSchema, "key");
const parseQuery = parserOf(KeysQuerySchema, "query");
const parseRotate = parserOf(KeyRotateRequestSchema, "rotation");

/** Operators create, list, rotate and revoke API keys. A key never creates one that may do more than itself. */
export class KeyService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #clock: Clock;
  readonly #keyMaker: KeyMaker;

  constructor(parts: KeyParts) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#clock = parts.clock;
    this.#keyMaker = parts.keyMaker;
  }

  /** The first key of a tenant creates the tenant. */
  async create(principal: Principal, input: unknown): Promise<KeyCreated> {
    const request = parseCreate(input ?? {});
    const tenant = request.tenant === undefined ? principal.tenant : parseTenantName(request.tenant);
    await this.#guard.authorize(principal, "keys.write", { tenant });
    const verbs = parseVerbs(request.verbs);
    if (request.use === "sign") assertMaySign(request.agent_id, verbs);
    const nowMs = this.#clock.nowMs();
    const expiresAtMs = parseExpiry(request.expires_at, nowMs);
    await this.#assertMayHandOut(principal, { verbs, expiresAtMs });
    const scope = {
      tenant,
      agentId: request.agent_id === undefined ? null : await this.#readAgent(tenant, request.agent_id),
      verbs,
      createdAtMs: nowMs,
      createdBy: actorName(principal),
      expiresAtMs,
      replaces: null,
    };
    const { record, text } = this.#keyMaker.make(scope, request.use);
    const by = { actor: actorName(principal), atMs: nowMs };
    await decideAndCommit(this.#store, async () => {
      await this.#assertRoomFor(record, nowMs);
      const born = (await this.#store.tenants.get(tenant)) === undefined ? [newTenant(tenant, nowMs)] : [];
      const events = [...born.map((each) => tenantEvent(each, by)), keyEvent("key.created", record, by)];
      return { changes: { tenant, tenants: born, keys: [record], events }, answer: undefined };
    });
    return { ...viewKey(record, nowMs), key: text };
  }

  /** Includes revoked and expired keys. */
  async list(principal: Principal, input: unknown): Promise<KeysResponse> {
    const query = parseQuery(input);
    const tenant = query.tenant === undefined ? principal.tenant : parseTenantName(query.tenant);
    await this.#guard.authorize(principal, "keys.read", { tenant });
    if ((await this.#store.tenants.get(tenant)) === undefined) {
      throw new RelayError("not_found", `there is no tenant ${tenant}; GET /tenants lists all`);
    }
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const agentId = query.agent === undefined ? undefined : parseAgentId(query.agent, "agent");
    const keys = await this.#store.keys.list({ tenant, agentId, afterId: query.page_token ?? "", limit });
    const nowMs = this.#clock.nowMs();
    const last = keys.length === limit ? keys.at(-1) : undefined;
    return {
      keys: keys.map((key) => viewKey(key, nowMs)),
      ...(last === undefined ? {} : { pageToken: last.id }),
    };
  }

  /**
   * Creates a key with the same agent, verbs and expiry; the old one works for `overlap_ms` more. Operators rotate
   * every key of their tenant. An agent's key rotates only itself, unless its verbs leave `keys.write` out. It may do
   * so again during the overlap, because the reply with the new key may have been lost. Each successor keeps the
   * expiry that the first key had before it was rotated.
   */
  async rotate(principal: Principal, keyId: string, input: unknown): Promise<KeyRotated> {
    const { overlap_ms: overlapMs = LIMITS.keyOverlapMsDefault } = parseRotate(input ?? {});
    const isOwn = principal.keyId === keyId;
    const isOwnOfAgent = isOwn && principal.kind === "agent" && mayWriteKeys(principal);
    if (!isOwnOfAgent) await this.#guard.authorize(principal, "keys.write");
    return this.#change(principal, keyId, async (old, nowMs) => {
      const expiresAtMs = await this.#plannedEnd(old);
      // A rotated key ends before its successors, so the limit on expiry does not apply to its own rotation.
      if (!isOwn) await this.#assertMayHandOut(principal, { verbs: old.verbs, expiresAtMs });
      if (hasExpired(old.expiresAtMs, nowMs)) {
        throw new RelayError("wrong_state", `${old.id} has expired; make a new key instead`);
      }
      await this.#assertRoomFor(old, nowMs);
      const endsAtMs = Math.min(old.expiresAtMs ?? Number.POSITIVE_INFINITY, nowMs + overlapMs);
      const scope = successorOf({ ...old, expiresAtMs }, actorName(principal), nowMs);
      const { record, text } = this.#keyMaker.make(scope, useOf(old));
      const ending = formatInstant(endsAtMs);
      const by = { actor: actorName(principal), atMs: nowMs };
      const event = keyEvent("key.rotated", record, by, { replaces: old.id, old_expires_at: ending });
      return {
        changes: {
          keys: [{ ...old, expiresAtMs: endsAtMs, replacedBy: record.id }, record],
          events: [event],
        },
        answer: { ...viewKey(record, nowMs), key: text, old_key_id: old.id, old_expires_at: ending },
      };
    });
  }

  /** Takes effect with the next request. The successor stays valid; the answer names it. */
  async revoke(principal: Principal, keyId: string): Promise<KeyView> {
    await this.#guard.authorize(principal, "keys.write");
    return this.#change(principal, keyId, async (key, nowMs) => {
      const revoked = revokedAt(key, nowMs);
      const event = keyEvent("key.revoked", key, { actor: actorName(principal), atMs: nowMs });
      return { changes: { keys: [revoked], events: [event] }, answer: viewKey(revoked, nowMs) };
    });
  }

  /** The expiry that the key had before it was rotated: its last successor has it, revoked or not. */
  async #plannedEnd(key: KeyRecord): Promise<number | null> {
    let last = key;
    while (last.replacedBy !== null) {
      const successor = await this.#store.keys.get(last.replacedBy);
      if (successor === undefined) break;
      last = successor;
    }
    return last.expiresAtMs;
  }

  /** Another tenant's key is `not_found`, except for the relay's operator. */
  async #change<Answer>(
    principal: Principal,
    keyId: string,
    decide: (
      key: KeyRecord,
      nowMs: number,
    ) => Promise<{ readonly changes: Omit<Changes, "tenant">; readonly answer: Answer }>,
  ): Promise<Answer> {
    assertCleanJson(keyId, "key_id");
    const isRoot = principal.kind === "operator" && principal.isRoot;
    return decideAndCommit(this.#store, async () => {
      const key = await this.#store.keys.get(keyId);
      if (key === undefined || (key.tenant !== principal.tenant && !isRoot)) {
        throw new RelayError("not_found", "there is no key of that id; GET /keys lists all");
      }
      if (key.revokedAtMs !== null) {
        throw new RelayError("wrong_state", `${key.id} was revoked at ${formatInstant(key.revokedAtMs)}`);
      }
      const { changes, answer } = await decide(key, this.#clock.nowMs());
      return { changes: { ...changes, tenant: key.tenant }, answer };
    });
  }

  /** The agent need not be registered. An alias is refused, because a key works only with the id. */
  async #readAgent(tenant: string, input: string): Promise<AgentId> {
    const id = readAgentId(input);
    const named = await agentsNamed(this.#store, tenant, id);
    if (named.length === 0 || named.includes(id)) return id;
    const others = named.join(" and ");
    throw new RelayError(
      "conflict",
      `agent_id: ${quote(id)} is a name of ${others}; a key needs the id itself`,
    );
  }

  async #assertRoomFor({ tenant, agentId }: KeyRecord, nowMs: number): Promise<void> {
    if (agentId !== null) await assertRoomForKey(this.#store, tenant, agentId, nowMs);
  }

  /** Else the holder of a limited key could create an unlimited one. */
  async #assertMayHandOut(
    principal: Principal,
    { verbs, expiresAtMs }: Pick<KeyRecord, "verbs" | "expiresAtMs">,
  ): Promise<void> {
    const { verbs: own, expiresAtMs: endsAtMs } = principal;
    if (own !== undefined && verbs?.every((verb) => own.has(verb)) !== true) {
      const most = `verbs: a key that is limited itself hands out no more than it has: ${[...own].join(", ")}`;
      await this.#guard.refuse(principal, "keys.write", {}, new RelayError("permission_denied", most));
    }
    if (endsAtMs !== undefined && (expiresAtMs ?? Number.POSITIVE_INFINITY) > endsAtMs) {
      const last = `expires_at: a key that ends hands out none that ends later than itself, ${formatInstant(endsAtMs)}`;
      await this.#guard.refuse(principal, "keys.write", {}, new RelayError("permission_denied", last));
    }
  }
}

function mayWriteKeys({ verbs }: Principal): boolean {
  return verbs === undefined || verbs.has("keys.write");
}

function successorOf(old: KeyRecord, createdBy: string, nowMs: number): KeyScope {
  const { tenant, agentId, verbs, expiresAtMs, id: replaces } = old;
  return { tenant, agentId, verbs, expiresAtMs, replaces, createdBy, createdAtMs: nowMs };
}

/** A signing key signs messages from one agent and is good for nothing else. */
function assertMaySign(agentId: string | undefined, verbs: readonly Verb[] | null): void {
  if (agentId === undefined) {
    throw new RelayError(
      "invalid_argument",
      "agent_id: a signing key needs one; it signs what that agent sends",
    );
  }
  const other = verbs?.find((verb) => verb !== "messages.send");
  if (other === undefined) return;
  throw new RelayError(
    "invalid_argument",
    `verbs: a signing key is good for messages.send alone, not for ${other}; leave verbs out`,
  );
}

function newTenant(id: string, nowMs: number): TenantRecord {
  return { id, capabilities: false, createdAtMs: nowMs, version: 0 };
}

function parseVerbs(input: readonly string[] | undefined): readonly Verb[] | null {
  if (input === undefined) return null;
  const known: readonly string[] = VERBS;
  const strange = input.find((verb) => !known.includes(verb));
  if (strange === undefined) return input as readonly Verb[];
  throw new RelayError("invalid_argument", `verbs: there is no ${strange}; known are ${VERBS.join(", ")}`, {
    details: { known: VERBS },
  });
}

/** The agent's keys that are neither revoked nor expired. */
export async function workingKeys(
  store: RelayStore,
  tenant: string,
  agentId: AgentId,
  nowMs: number,
): Promise<readonly KeyRecord[]> {
  const working: KeyRecord[] = [];
  let afterId = "";
  for (;;) {
    const page = await store.keys.list({ tenant, agentId, afterId, limit: LIMITS.listLimitMax });
    working.push(...page.filter((key) => key.revokedAtMs === null && !hasExpired(key.expiresAtMs, nowMs)));
    const last = page.at(-1);
    if (last === undefined) return working;
    afterId = last.id;
  }
}

/** Limits an agent's keys, because one commit revokes all of them when it leaves. */
async function assertRoomForKey(
  store: RelayStore,
  tenant: string,
  agentId: AgentId,
  nowMs: number,
): Promise<void> {
  if ((await workingKeys(store, tenant, agentId, nowMs)).length < LIMITS.agentKeysMax) return;
  throw new RelayError(
    "resource_exhausted",
    `${agentId} has ${LIMITS.agentKeysMax} keys that work, which is the most; revoke some first`,
  );
}

function viewKey(key: KeyRecord, nowMs: number): KeyView {
  return {
    key_id: key.id,
    use: useOf(key),
    tenant: key.tenant,
    ...(key.agentId === null ? {} : { agent_id: key.agentId }),
    ...(key.verbs === null ? {} : { verbs: key.verbs }),
    state: stateOf(key, nowMs),
    created_at: formatInstant(key.createdAtMs),
    created_by: key.createdBy,
    ...(key.expiresAtMs === null ? {} : { expires_at: formatInstant(key.expiresAtMs) }),
    ...(key.revokedAtMs === null ? {} : { revoked_at: formatInstant(key.revokedAtMs) }),
    ...(key.replaces === null ? {} : { replaces: key.replaces }),
    ...(key.replacedBy === null ? {} : { replaced_by: key.replacedBy }),
  };
}

function useOf({ signingSecret }: KeyRecord): KeyUse {
  return signingSecret === null ? "bearer" : "sign";
}

/** The event has neither the secret nor its digest. */
export function keyEvent(
  type: "key.created" | "key.revoked" | "key.rotated",
  key: KeyRecord,
  by: { readonly actor: string; readonly atMs: number },
  more: Readonly<Record<string, unknown>> = {},
): EventDraft {
  return {
    type,
    ...by,
    agentId: key.agentId,
    messageId: null,
    taskId: null,
    threadId: null,
    data: {
      key_id: key.id,
      ...(key.signingSecret === null ? {} : { use: useOf(key) }),
      ...(key.agentId === null ? {} : { agent_id: key.agentId }),
      ...(key.verbs === null ? {} : { verbs: key.verbs }),
      ...(key.expiresAtMs === null ? {} : { expires_at: formatInstant(key.expiresAtMs) }),
      ...more,
    },
  };
}

function stateOf(key: KeyRecord, nowMs: number): KeyView["state"] {
  if (key.revokedAtMs !== null) return "revoked";
  return hasExpired(key.expiresAtMs, nowMs) ? "expired" : "active";
}
