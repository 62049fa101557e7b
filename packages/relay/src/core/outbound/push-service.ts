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
} from "@a2a-relay/protocol";
import type { Verb } from "../ports/access.ts";
import type { Guard } from "../access/guard.ts";
import { actorName, type Principal } from "../access/principal.ts";
import { newSigningSecret } from "../keys/signing-secret.ts";
import type { Directory } from "../agents/directory.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Randomness } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";
import { CLOSED } from "../rules/circuit-breaker.ts";
import { messagesAfter } from "./push-delivery.ts";
import { isForgotten, pushEvent, rotated } from "../registration/push-endpoint.ts";
import type { PushEndpoint, PushRecord } from "../ports/pushes.ts";
import { newPush, nextRound } from "./push-round.ts";
import { viewEndpoint, viewPush } from "./push-view.ts";

const parseQuery = parserOf(PushQuerySchema, "query");
const parseRotate = parserOf(PushRotateRequestSchema, "rotation");
const parseReplay = parserOf(PushReplayRequestSchema, "replay");

/** What an agent, and an operator, sees of where it is called and may do about it. */
export class PushService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #randomness: Randomness;

  constructor(parts: ServiceParts & { readonly randomness: Randomness }) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#randomness = parts.randomness;
  }

  /** The endpoint, how it fares, and what was pushed lately, newest first. */
  async endpoint(principal: Principal, agent: string, input: unknown): Promise<PushEndpointView> {
    const query = parseQuery(input);
    const agentId = await this.#endpointOf(principal, agent, "push.read");
    const { tenant } = principal;
    const endpoint = await this.#known(tenant, agentId);
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const found = await this.#store.pushesOf({ tenant, agentId, state: query.state, limit });
    // What was pushed to an owner before this one is not for it to see.
    const othersBeforeMs = await this.#store.othersBeforeMs(tenant, agentId);
    const own = found.filter(({ createdAtMs }) => createdAtMs >= othersBeforeMs);
    const pushes = await Promise.all(own.map((push) => this.#view(push)));
    const pending = await this.#store.countPendingPushes(tenant, agentId);
    return viewEndpoint(endpoint, { pending, pushes, nowMs: this.#clock.nowMs() });
  }

  /** A new secret, which is in this answer and nowhere else. The one before it signs too for a while. */
  async rotate(principal: Principal, agent: string, input: unknown): Promise<PushRotated> {
    const { overlap_ms: overlapMs = LIMITS.pushSecretOverlapMsDefault } = parseRotate(input ?? {});
    const agentId = await this.#endpointOf(principal, agent, "push.write");
    const { tenant } = principal;
    return decideAndCommit(this.#store, async () => {
      const nowMs = this.#clock.nowMs();
      const before = await this.#known(tenant, agentId);
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
   * Pushes again all mail that waits in the mailbox and was accepted since then, whatever became of its pushes
   * before. The circuit is closed, because whoever asks for this knows that the endpoint is there again.
   */
  async replay(principal: Principal, agent: string, input: unknown): Promise<PushReplayed> {
    const sinceMs = parseInstant(parseReplay(input).since, "since");
    const agentId = await this.#endpointOf(principal, agent, "push.write");
    const { tenant } = principal;
    await this.#active(tenant, agentId);
    let replayed = 0;
    for (let position = 0; ;) {
      const mail = await messagesAfter(this.#store, { tenant, agentId }, position, this.#clock.nowMs());
      const last = mail.at(-1);
      if (last === undefined) break;
      position = last.delivery.position;
      const wanted = mail.filter(({ message }) => message.acceptedAtMs >= sinceMs);
      if (wanted.length > 0) replayed += await this.#replay(tenant, agentId, wanted);
      await this.#clock.nextTurn();
    }
    await this.#replayed(principal, agentId, { since: formatInstant(sinceMs), replayed });
    return { agent_id: agentId, replayed };
  }

  async #endpointOf(principal: Principal, agent: string, verb: Verb): Promise<AgentId> {
    const agentId = await this.#directory.resolve(principal.tenant, agent, "agent_id");
    await this.#guard.authorize(principal, verb, { agentId });
    return agentId;
  }

  async #known(tenant: string, agentId: AgentId): Promise<PushEndpoint> {
    const endpoint = await this.#store.pushEndpoint(tenant, agentId);
    if (endpoint !== undefined && !isForgotten(endpoint)) return endpoint;
    throw new RelayError(
      "not_found",
      `mail of ${agentId} is not pushed; register it with a callback_url and push: "webhook"`,
    );
  }

  async #active(tenant: string, agentId: AgentId): Promise<PushEndpoint> {
    const endpoint = await this.#known(tenant, agentId);
    if (endpoint.state === "active") return endpoint;
    throw new RelayError(
      "wrong_state",
      `the endpoint of ${agentId} is disabled (${endpoint.reason ?? ""}); register it again with push: "${endpoint.mode}"`,
    );
  }

  async #view(push: PushRecord): Promise<PushView> {
    const attempts = await this.#store.pushAttempts(push.tenant, push.messageId, LIMITS.pushAttemptsMax);
    return viewPush(push, attempts, { withAnswers: true });
  }

  /** Answers how many; what was taken meanwhile is left out. Due at once, in the order it was accepted. */
  async #replay(tenant: string, agentId: AgentId, mail: readonly MailboxMessage[]): Promise<number> {
    return decideAndCommit(this.#store, async () => {
      const nowMs = this.#clock.nowMs();
      const pushes: PushRecord[] = [];
      // Written as it is, for its version: nothing is to wait for an endpoint that is disabled meanwhile.
      const endpoint = await this.#active(tenant, agentId);
      for (const { message } of mail) {
        const delivery = await this.#store.delivery(tenant, message.id);
        if (delivery?.state !== "available") continue;
        const known = await this.#store.push(tenant, message.id);
        const firstAtMs = message.acceptedAtMs;
        pushes.push(
          known === undefined
            ? newPush(delivery, { nowMs, firstAtMs })
            : nextRound(known, delivery, firstAtMs),
        );
      }
      return { changes: { tenant, pushes, pushProgress: [endpoint], events: [] }, answer: pushes.length };
    });
  }

  /** The change of the endpoint is also what wakes its pusher. */
  async #replayed(
    principal: Principal,
    agentId: AgentId,
    data: { readonly since: string; readonly replayed: number },
  ): Promise<void> {
    const { tenant } = principal;
    await decideAndCommit(this.#store, async () => {
      const endpoint = { ...(await this.#known(tenant, agentId)), ...CLOSED };
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
    `mail of ${agentId} is sent over A2A, where nothing is signed: it has no secret`,
  );
}
