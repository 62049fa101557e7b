import {
  type AgentId,
  formatInstant,
  LIMITS,
  parseInstant,
  type PushEndpointView,
  PushQuerySchema,
  type PushReplayed,
  PushReplayRequestSchema,
  type PushRotated,
  PushRotateRequestSchema,
  type PushView,
  RelayError,
  type Verb,
} from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import { actorName, type Principal } from "../access/principal.ts";
import { newSigningSecret } from "../keys/key-maker.ts";
import type { Directory } from "../agents/directory.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Randomness } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import { CLOSED } from "../rules/circuit-breaker.ts";
import { messagesAfter } from "./push-delivery.ts";
import { isForgotten, pushEvent, rotated } from "../registration/push-endpoint.ts";
import type { PushEndpoint, PushRecord } from "../ports/pushes.ts";
import { newPush, nextRound } from "./push-round.ts";
import { viewEndpoint, viewPush } from "./push-view.ts";
import { ownedSinceMs } from "../rules/agent-owner.ts";

const parseQuery = parserOf(PushQuerySchema, "query");
const parseRotate = parserOf(PushRotateRequestSchema, "rotation");
const parseReplay = parserOf(PushReplayRequestSchema, "replay");

export interface PushServiceParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** An agent's push endpoint, for that agent and for operators: read it, rotate its secret, replay pushes. */
export class PushService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #randomness: Randomness;

  constructor(parts: PushServiceParts) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#randomness = parts.randomness;
  }

  /** The endpoint, its circuit, and its latest pushes, newest first. */
  async endpoint(principal: Principal, agent: string, input: unknown): Promise<PushEndpointView> {
    const query = parseQuery(input);
    const agentId = await this.#authorized(principal, agent, "push.read");
    const { tenant } = principal;
    const endpoint = await this.#registered(tenant, agentId);
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const found = await this.#store.pushes.list({ tenant, agentId, state: query.state, limit });
    // The agent may not see pushes to a previous owner of its id.
    const othersBeforeMs = await ownedSinceMs(this.#store, tenant, agentId);
    const own = found.filter(({ createdAtMs }) => createdAtMs >= othersBeforeMs);
    const pushes = await Promise.all(own.map((push) => this.#view(push)));
    const pending = await this.#store.pushes.countPending(tenant, agentId);
    return viewEndpoint(endpoint, { pending, pushes, nowMs: this.#clock.nowMs() });
  }

  /** Makes a new secret; only this answer contains it. The previous secret also signs until the overlap ends. */
  async rotate(principal: Principal, agent: string, input: unknown): Promise<PushRotated> {
    const { overlap_ms: overlapMs = LIMITS.pushSecretOverlapMsDefault } = parseRotate(input ?? {});
    const agentId = await this.#authorized(principal, agent, "push.write");
    const { tenant } = principal;
    return decideAndCommit(this.#store, async () => {
      const nowMs = this.#clock.nowMs();
      const before = await this.#registered(tenant, agentId);
      assertSigned(before);
      const endpoint = rotated(before, newSigningSecret(this.#randomness), { nowMs, overlapMs });
      const old_secret_until = formatInstant(endpoint.oldSecretUntilMs ?? nowMs);
      const by = { actor: actorName(principal), atMs: nowMs };
      const event = pushEvent("push.rotated", endpoint, by, { old_secret_until });
      return {
        changes: { tenant, pushEndpoints: [endpoint], events: [event] },
        answer: { agent_id: agentId, push_secret: endpoint.secret, old_secret_until },
      };
    });
  }

  /**
   * Pushes all available messages again that were accepted since then, whatever the state of their pushes. Closes the
   * circuit: the caller knows that the endpoint works again.
   */
  async replay(principal: Principal, agent: string, input: unknown): Promise<PushReplayed> {
    const sinceMs = parseInstant(parseReplay(input).since, "since");
    const agentId = await this.#authorized(principal, agent, "push.write");
    const { tenant } = principal;
    await this.#active(tenant, agentId);
    let replayed = 0;
    for (let position = 0; ;) {
      const messages = await messagesAfter(this.#store, { tenant, agentId }, position, this.#clock.nowMs());
      const last = messages.at(-1);
      if (last === undefined) break;
      position = last.delivery.position;
      const wanted = messages.filter(({ message }) => message.acceptedAtMs >= sinceMs);
      if (wanted.length > 0) replayed += await this.#replay(tenant, agentId, wanted);
      await this.#clock.nextTurn();
    }
    await this.#replayed(principal, agentId, { since: formatInstant(sinceMs), replayed });
    return { agent_id: agentId, replayed };
  }

  async #authorized(principal: Principal, agent: string, verb: Verb): Promise<AgentId> {
    const agentId = await this.#directory.resolve(principal.tenant, agent, "agent_id");
    await this.#guard.authorize(principal, verb, { agentId });
    return agentId;
  }

  async #registered(tenant: string, agentId: AgentId): Promise<PushEndpoint> {
    const endpoint = await this.#store.endpoints.get(tenant, agentId);
    if (endpoint !== undefined && !isForgotten(endpoint)) return endpoint;
    throw new RelayError(
      "not_found",
      `messages to ${agentId} are not pushed; register it with a callback_url and push: "webhook"`,
    );
  }

  async #active(tenant: string, agentId: AgentId): Promise<PushEndpoint> {
    const endpoint = await this.#registered(tenant, agentId);
    if (endpoint.state === "active") return endpoint;
    throw new RelayError(
      "wrong_state",
      `the endpoint of ${agentId} is disabled (${endpoint.reason ?? ""}); register it again with push: "${endpoint.mode}"`,
    );
  }

  async #view(push: PushRecord): Promise<PushView> {
    const attempts = await this.#store.pushes.attempts(push.tenant, push.messageId, LIMITS.pushAttemptsMax);
    return viewPush(push, attempts, { withAnswers: true });
  }

  /** Returns how many are still available. They are due at once, in the order of acceptance. */
  async #replay(tenant: string, agentId: AgentId, messages: readonly MailboxMessage[]): Promise<number> {
    return decideAndCommit(this.#store, async () => {
      const nowMs = this.#clock.nowMs();
      const pushes: PushRecord[] = [];
      // Written unchanged, only to check its version: a disabled endpoint must get no pending pushes.
      const endpoint = await this.#active(tenant, agentId);
      for (const { message } of messages) {
        const [delivery] = await this.#store.deliveries.get(tenant, [message.id]);
        if (delivery?.state !== "available") continue;
        const [before] = await this.#store.pushes.get(tenant, [message.id]);
        const firstAtMs = message.acceptedAtMs;
        pushes.push(
          before === undefined
            ? newPush(delivery, { nowMs, firstAtMs })
            : nextRound(before, delivery, firstAtMs),
        );
      }
      return { changes: { tenant, pushes, pushProgress: [endpoint], events: [] }, answer: pushes.length };
    });
  }

  /** The change of the endpoint also wakes its pusher. */
  async #replayed(
    principal: Principal,
    agentId: AgentId,
    data: { readonly since: string; readonly replayed: number },
  ): Promise<void> {
    const { tenant } = principal;
    await decideAndCommit(this.#store, async () => {
      const endpoint = { ...(await this.#registered(tenant, agentId)), ...CLOSED };
      const by = { actor: actorName(principal), atMs: this.#clock.nowMs() };
      const event = pushEvent("push.replayed", endpoint, by, data);
      return { changes: { tenant, pushEndpoints: [endpoint], events: [event] }, answer: undefined };
    });
  }
}

function assertSigned({ mode, agentId }: PushEndpoint): void {
  if (mode === "webhook") return;
  throw new RelayError(
    "wrong_state",
    `messages to ${agentId} are sent over A2A, where nothing is signed: it has no secret`,
  );
}
