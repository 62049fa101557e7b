import {
  type AgentId,
  type KeyCreated,
  KeyCreateRequestSchema,
  type KeyRotated,
  KeyRotateRequestSchema,
  KeysQuerySchema,
  type KeysResponse,
  type KeyView,
  formatInstant,
  LIMITS,
  parseAgentId,
  quote,
  RelayError,
} from "@a2a-relay/protocol";
import { readAgentId } from "../rules/agent-name.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import { type KeyRecord, revokedAt, type TenantRecord, type Verb, VERBS } from "../ports/access.ts";
import { hasExpired, parseExpiry } from "../access/expiry.ts";
import type { Guard } from "../access/guard.ts";
import type { KeyMaker, KeyScope } from "./key-maker.ts";
import { keyEvent, useOf, viewKey } from "./key-view.ts";
import { actorName, type Principal } from "../access/principal.ts";
import { parseTenantName } from "./tenant-name.ts";
import { tenantEvent } from "./tenant-view.ts";
import { assertRoomForKey } from "./working-keys.ts";

export interface KeyParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly keyMaker: KeyMaker;
}

const parseCreate = parserOf(KeyCreateRequestSchema, "key");
const parseQuery = parserOf(KeysQuerySchema, "query");
const parseRotate = parserOf(KeyRotateRequestSchema, "rotation");

/** API keys: made, listed, rotated and revoked by operators. A key never makes one that may do more than itself. */
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

  /** A tenant comes into being with its first key. */
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
      const born = (await this.#store.tenant(tenant)) === undefined ? [newTenant(tenant, nowMs)] : [];
      const events = [...born.map((each) => tenantEvent(each, by)), keyEvent("key.created", record, by)];
      return { changes: { tenant, tenants: born, keys: [record], events }, answer: undefined };
    });
    return { ...viewKey(record, nowMs), key: text };
  }

  /** Revoked and expired ones too. */
  async list(principal: Principal, input: unknown): Promise<KeysResponse> {
    const query = parseQuery(input);
    const tenant = query.tenant === undefined ? principal.tenant : parseTenantName(query.tenant);
    await this.#guard.authorize(principal, "keys.read", { tenant });
    if ((await this.#store.tenant(tenant)) === undefined) {
      throw new RelayError("not_found", `there is no tenant ${tenant}; GET /tenants lists all`);
    }
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const agentId = query.agent === undefined ? undefined : parseAgentId(query.agent, "agent");
    const keys = await this.#store.keys({ tenant, agentId, afterId: query.page_token ?? "", limit });
    const nowMs = this.#clock.nowMs();
    const last = keys.length === limit ? keys.at(-1) : undefined;
    return {
      keys: keys.map((key) => viewKey(key, nowMs)),
      ...(last === undefined ? {} : { pageToken: last.id }),
    };
  }

  /**
   * Makes a key of the same scope, its end included, while the old one goes on for a while. Operators rotate
   * every key of their tenant. A key of an agent rotates itself, and no other, unless its verbs leave
   * `keys.write` out. It may do so again while it goes on: the reply with the new key may have been lost.
   * The next successor then ends when the lost one should have, not when the old key does.
   */
  async rotate(principal: Principal, keyId: string, input: unknown): Promise<KeyRotated> {
    const { overlap_ms: overlapMs = LIMITS.keyOverlapMsDefault } = parseRotate(input ?? {});
    const isOwn = principal.keyId === keyId;
    const isOwnOfAgent = isOwn && principal.kind === "agent" && mayWriteKeys(principal);
    if (!isOwnOfAgent) await this.#guard.authorize(principal, "keys.write");
    return this.#change(principal, keyId, async (old, nowMs) => {
      const expiresAtMs = await this.#plannedEnd(old);
      // A key that was rotated ends before its successors, and may be given one again all the same.
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

  /** From the next request on it opens nothing. Its successor goes on; the answer names it. */
  async revoke(principal: Principal, keyId: string): Promise<KeyView> {
    await this.#guard.authorize(principal, "keys.write");
    return this.#change(principal, keyId, async (key, nowMs) => {
      const revoked = revokedAt(key, nowMs);
      const event = keyEvent("key.revoked", key, { actor: actorName(principal), atMs: nowMs });
      return { changes: { keys: [revoked], events: [event] }, answer: viewKey(revoked, nowMs) };
    });
  }

  /** When the key was to end before it was rotated: its last successor has kept that, revoked or not. */
  async #plannedEnd(key: KeyRecord): Promise<number | null> {
    let last = key;
    while (last.replacedBy !== null) {
      const successor = await this.#store.key(last.replacedBy);
      if (successor === undefined) break;
      last = successor;
    }
    return last.expiresAtMs;
  }

  /** Another tenant's key is not there, whoever asks but the relay's own operator. */
  async #change<Answer>(
    principal: Principal,
    keyId: string,
    decide: (
      key: KeyRecord,
      nowMs: number,
    ) => Promise<{ readonly changes: Omit<Changes, "tenant">; readonly answer: Answer }>,
  ): Promise<Answer> {
    const isRoot = principal.kind === "operator" && principal.isRoot;
    return decideAndCommit(this.#store, async () => {
      const key = await this.#store.key(keyId);
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

  /** Its id, whether it is registered or not. A key for another name of an agent would open nothing. */
  async #readAgent(tenant: string, input: string): Promise<AgentId> {
    const id = readAgentId(input);
    const named = await this.#store.agentsNamed(tenant, id);
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

  /** Whoever holds a key of few verbs, or one that ends, would else make itself one of all and for ever. */
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

/** What it signs is a message from one agent, and nothing else can be asked for with it. */
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
