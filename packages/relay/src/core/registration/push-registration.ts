import { hash } from "node:crypto";
import type { RegisterRequest, Verb } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import { newSigningSecret } from "../keys/key-maker.ts";
import type { EgressPolicy } from "../rules/egress-policy.ts";
import type { Randomness } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { endpointAfter } from "./push-endpoint.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import type { AgentRecord } from "../ports/agents.ts";

export interface PushRegistrationParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly egress: EgressPolicy;
  readonly randomness: Randomness;
}

/** The agent before the registration, if it was registered, and after it. */
export interface Registered {
  readonly before: AgentRecord | undefined;
  readonly record: AgentRecord;
}

/** What a registration changes of the agent's endpoint. */
export interface PushAfter {
  readonly endpoint: PushEndpoint | undefined;
  /** The endpoint, if this registration changed it. */
  readonly changed: readonly PushEndpoint[];
  /** A new secret, for its owner. */
  readonly secret: string | undefined;
  /** For the journal. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Enough to distinguish addresses. The address itself may be a secret. */
const DIGEST_CHARS = 16;

/** The part of a registration that is about push. */
export class PushRegistration {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #egress: EgressPolicy;
  readonly #randomness: Randomness;

  constructor(parts: PushRegistrationParts) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#egress = parts.egress;
    this.#randomness = parts.randomness;
  }

  async after(principal: Principal, request: RegisterRequest, agent: Registered): Promise<PushAfter> {
    const { tenant, id, callbackUrl } = agent.record;
    const before = await this.#store.endpoints.get(tenant, id);
    for (const verb of verbsFor(request, agent, before)) {
      await this.#guard.authorize(principal, verb, { agentId: id });
    }
    // The operator may have allowed the address before and not now.
    if (request.push != null && callbackUrl !== null) {
      this.#egress.checkUrl(callbackUrl, "callback_url");
    }
    const wish = { ...request, tenant, agentId: id, callbackUrl };
    const endpoint = endpointAfter(before, wish, () => newSigningSecret(this.#randomness));
    const isChanged = endpoint !== undefined && !isUnchanged(endpoint, before);
    return {
      endpoint,
      changed: isChanged ? [endpoint] : [],
      secret:
        endpoint?.mode === "webhook" && endpoint.secret !== before?.secret ? endpoint.secret : undefined,
      data: isChanged ? dataOf(endpoint, principal) : {},
    };
  }
}

function isUnchanged(endpoint: PushEndpoint, before: PushEndpoint | undefined): boolean {
  const members = Object.entries(before ?? {}) as [keyof PushEndpoint, unknown][];
  return before !== undefined && members.every(([name, value]) => endpoint[name] === value);
}

/** The caller who chooses the endpoint reads the messages there, and settles them if an answer acknowledges. */
function verbsFor(
  request: RegisterRequest,
  agent: Registered,
  before: PushEndpoint | undefined,
): readonly Verb[] {
  const { push, notice, push_ack: ack } = request;
  const isSaid = push !== undefined || notice !== undefined || ack !== undefined;
  if (!isSaid && !isMoved(agent, before)) return [];
  const settles = push === "a2a" || (ack ?? (push !== null && before?.acknowledges === true));
  return ["push.write", "mailbox.read", ...(settles ? (["mailbox.settle"] as const) : [])];
}

/** Also where push is off: its owner may switch it on without checking the address. */
function isMoved({ before, record }: Registered, endpoint: PushEndpoint | undefined): boolean {
  if (record.callbackUrl === null) return endpoint?.state === "active";
  return record.callbackUrl !== before?.callbackUrl;
}

/** Names the key, because the endpoint outlives it. */
function dataOf({ state, mode, url }: PushEndpoint, { keyId }: Principal): Readonly<Record<string, unknown>> {
  return {
    push: state === "active" ? mode : null,
    callback_digest: hash("sha256", url, "hex").slice(0, DIGEST_CHARS),
    ...(keyId === undefined ? {} : { key_id: keyId }),
  };
}
