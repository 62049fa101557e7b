import {
  A2A_DIALECTS,
  type A2aMessage,
  type A2aTask,
  type AgentInterface,
  isUnknownMethod,
  type JsonObject,
  LIMITS,
} from "@a2a-relay/protocol";
import type { Clock } from "../../core/ports/clock.ts";
import {
  type FoundAgent,
  type Outbound,
  type PushOutcome,
  type PushReport,
  RemoteFailure,
  type RemoteTaskQuery,
  type RemoteSendOptions,
  type SentMessage,
  type TaskUpdatePush,
  type Webhook,
} from "../../core/ports/outbound.ts";
import { HOW_TO_ALLOW } from "../../core/rules/egress-policy.ts";
import type { HttpClient } from "../egress/http-client.ts";
import { AgentCaller } from "./agent-caller.ts";
import { AgentCards } from "./agent-cards.ts";
import { OutboundExchange, type ExchangeSettings, type Post } from "./outbound-exchange.ts";
import { REASONS, reportOf } from "./push-answer.ts";
import { headerText, webhookPost } from "./webhook-post.ts";

const BLOCKED = `the url is at an address that the relay does not call; ${HOW_TO_ALLOW}`;

export interface HttpOutboundSettings extends ExchangeSettings {
  /** The relay's public address; known once it listens. */
  readonly publicUrl: () => string;
}

/** Webhooks, pushes of tasks and calls of A2A agents, over HTTP. */
export class HttpOutbound implements Outbound {
  readonly #clock: Clock;
  readonly #publicUrl: () => string;
  readonly #exchange: OutboundExchange;
  readonly #agents: AgentCaller;
  readonly #cards: AgentCards;

  constructor(client: HttpClient, clock: Clock, settings: HttpOutboundSettings) {
    this.#clock = clock;
    this.#publicUrl = settings.publicUrl;
    this.#exchange = new OutboundExchange(client, clock, settings);
    this.#agents = new AgentCaller(this.#exchange);
    this.#cards = new AgentCards(this.#agents, clock);
  }

  pushWebhook(webhook: Webhook, signal: AbortSignal): Promise<PushReport | undefined> {
    const at = { publicUrl: this.#publicUrl(), nowMs: this.#clock.nowMs() };
    return this.#post(webhookPost(webhook, at), signal);
  }

  async pushTaskUpdate(push: TaskUpdatePush, signal: AbortSignal): Promise<PushOutcome | undefined> {
    const report = await this.#post(taskUpdatePost(push), signal);
    if (report?.outcome.kind !== "failed" || report.outcome.reason !== REASONS.blocked)
      return report?.outcome;
    return { ...report.outcome, reason: BLOCKED };
  }

  async findAgent(url: string, signal: AbortSignal): Promise<FoundAgent> {
    return this.#heeding(url, async () => ({ url, at: await this.#cards.find(url, signal) }));
  }

  sendMessage({ url, at }: FoundAgent, params: JsonObject, options: RemoteSendOptions): Promise<SentMessage> {
    const { otherDialect, ...known } = at;
    return this.#heeding(url, async () => {
      try {
        return await this.#send(known, params, options);
      } catch (reason) {
        const isOther = reason instanceof RemoteFailure && isUnknownMethod(reason.error);
        if (otherDialect === undefined || !isOther) throw reason;
        const other = { ...known, dialect: otherDialect };
        const sent = await this.#send(other, params, options);
        this.#cards.learn(url, other);
        return sent;
      }
    });
  }

  async getTask(at: AgentInterface, task: RemoteTaskQuery, signal: AbortSignal): Promise<A2aTask> {
    const { id, historyLength } = task;
    const call = { operation: "get", params: { id, historyLength } } as const;
    return (await this.#agents.call(at, call, signal)).result as unknown as A2aTask;
  }

  async cancelTask(
    at: AgentInterface,
    { id }: Pick<RemoteTaskQuery, "id">,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#agents.call(at, { operation: "cancel", params: { id } }, signal);
  }

  #post(post: Post, signal: AbortSignal): Promise<PushReport | undefined> {
    const request = { ...post, method: "POST", answerBytesMax: LIMITS.pushAnswerBytesMax, signal } as const;
    return reportOf(this.#exchange.request(request), signal);
  }

  async #send(
    at: AgentInterface,
    params: JsonObject,
    { idempotencyKey, signal }: RemoteSendOptions,
  ): Promise<SentMessage> {
    const call = { operation: "send", params, idempotencyKey: headerText(idempotencyKey) } as const;
    const { result, recorded } = await this.#agents.call(at, call, signal);
    const { task, message } = result as { readonly task?: A2aTask; readonly message: A2aMessage };
    return { reply: task === undefined ? { message } : { task }, at, recorded };
  }

  /** A refusal may mean that the cached card is out of date. */
  async #heeding<T>(url: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (reason) {
      if (reason instanceof RemoteFailure && reason.kind === "refused") this.#cards.forget(url);
      throw reason;
    }
  }
}

function taskUpdatePost({ url, dialect, content, token, scheme, credentials }: TaskUpdatePush): Post {
  const written = A2A_DIALECTS[dialect];
  const [body, type] =
    "event" in content
      ? [
          written.writeEvent(content.event, { isFinal: false }),
          { "content-type": "application/a2a+json", "a2a-version": dialect },
        ]
      : [written.writeResult("get", content.task), { "content-type": "application/json" }];
  const authorization =
    scheme === null || credentials === null ? {} : { authorization: `${scheme} ${credentials}` };
  const notification = token === null ? {} : { "x-a2a-notification-token": token };
  return { url, headers: { ...type, ...authorization, ...notification }, body: JSON.stringify(body) };
}
