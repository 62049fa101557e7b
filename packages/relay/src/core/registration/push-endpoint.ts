import { type AgentId, type PushMode, type RegisterRequest, RelayError } from "@a2a-relay/protocol";
import { CLOSED } from "../rules/circuit-breaker.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import type { EventDraft, EventType } from "../ports/journal.ts";

const SWITCHED_OFF = "the agent switched push off";
const LEFT = "the agent was removed";

/** What a registration asks for. */
export interface PushWish extends Pick<RegisterRequest, "push" | "notice" | "push_ack"> {
  readonly tenant: string;
  readonly agentId: AgentId;
  /** After the registration. */
  readonly callbackUrl: string | null;
}

/**
 * The endpoint after a registration; undefined when there is none and none is asked for. Absent fields stay unchanged.
 * `newSecret` is called only for a new endpoint.
 */
export function endpointAfter(
  before: PushEndpoint | undefined,
  wish: PushWish,
  newSecret: () => string,
): PushEndpoint | undefined {
  const { push, callbackUrl } = wish;
  if (push !== undefined && push !== null) {
    // The owner was never told the secret of another mode.
    const isNew = before === undefined || isForgotten(before) || before.mode !== push;
    const kept = isNew ? newEndpoint(before, wish, newSecret()) : before;
    return checked(asWished(switchedOn(kept, push, requireUrl(callbackUrl, push)), wish));
  }
  if (before === undefined || isForgotten(before)) {
    assertNothingWished(wish);
    return undefined;
  }
  if (push === null || callbackUrl === null) return checked(switchedOff(asWished(before, wish)));
  return checked(asWished({ ...before, url: callbackUrl }, wish));
}

/** Clears the address and the secrets, so that the next owner of the id gets neither. */
export function forgotten(endpoint: PushEndpoint): PushEndpoint {
  return {
    ...endpoint,
    ...CLOSED,
    url: "",
    secret: "",
    oldSecret: null,
    oldSecretUntilMs: null,
    isNotice: false,
    acknowledges: false,
    state: "disabled",
    reason: LEFT,
  };
}

export function isForgotten(endpoint: PushEndpoint): boolean {
  return endpoint.url === "";
}

export function whyDropped(endpoint: PushEndpoint | undefined): string {
  return endpoint?.reason ?? "messages of this agent are not pushed";
}

export function disabled(endpoint: PushEndpoint, reason: string): PushEndpoint {
  return { ...endpoint, ...CLOSED, state: "disabled", reason };
}

/** Whether the answer to a request to `sent` is about this endpoint. */
export function isSameEndpoint(endpoint: PushEndpoint, sent: PushEndpoint): boolean {
  const { url, secret, oldSecret } = endpoint;
  return url === sent.url && (sent.secret === secret || sent.secret === oldSecret);
}

/**
 * A second rotation during the overlap keeps the oldest secret: the owner may have lost the answer with the one
 * between, and receivers know the oldest. Without an overlap all previous secrets end at once.
 */
export function rotated(
  endpoint: PushEndpoint,
  secret: string,
  at: { readonly nowMs: number; readonly overlapMs: number },
): PushEndpoint {
  const untilMs = at.nowMs + at.overlapMs;
  if (at.overlapMs === 0) return { ...endpoint, secret, oldSecret: null, oldSecretUntilMs: null };
  const { oldSecret, oldSecretUntilMs } = withoutDeadSecret(endpoint, at.nowMs);
  return {
    ...endpoint,
    secret,
    oldSecret: oldSecret ?? endpoint.secret,
    oldSecretUntilMs: Math.max(oldSecretUntilMs ?? 0, untilMs),
  };
}

/** Removes an expired previous secret. Returns the same object when there is none. */
export function withoutDeadSecret(endpoint: PushEndpoint, nowMs: number): PushEndpoint {
  const { oldSecretUntilMs } = endpoint;
  if (oldSecretUntilMs === null || nowMs < oldSecretUntilMs) return endpoint;
  return { ...endpoint, oldSecret: null, oldSecretUntilMs: null };
}

/** Its cursor starts before all open messages. */
function newEndpoint(
  before: PushEndpoint | undefined,
  { tenant, agentId }: PushWish,
  secret: string,
): PushEndpoint {
  return {
    tenant,
    agentId,
    mode: "webhook",
    url: "",
    isNotice: false,
    acknowledges: false,
    secret,
    oldSecret: null,
    oldSecretUntilMs: null,
    state: "active",
    reason: null,
    ...CLOSED,
    afterPosition: 0,
    version: before?.version ?? 0,
  };
}

/** An endpoint that was disabled starts again before all open messages: some may have failed. */
function switchedOn(endpoint: PushEndpoint, mode: PushMode, url: string): PushEndpoint {
  const afterPosition = endpoint.state === "disabled" ? 0 : endpoint.afterPosition;
  return { ...endpoint, ...CLOSED, mode, url, state: "active", reason: null, afterPosition };
}

/** Keeps the reason of an endpoint that was disabled before. */
function switchedOff(endpoint: PushEndpoint): PushEndpoint {
  return endpoint.state === "disabled" ? endpoint : disabled(endpoint, SWITCHED_OFF);
}

/** Over A2A the agent's answer always acknowledges the message. */
function asWished(endpoint: PushEndpoint, { notice, push_ack: ack }: PushWish): PushEndpoint {
  if (endpoint.mode === "a2a") {
    if (notice === true) throw noWishForA2a("notice");
    if (ack === false) throw noWishForA2a("push_ack");
    return { ...endpoint, isNotice: false, acknowledges: true };
  }
  return {
    ...endpoint,
    isNotice: notice ?? endpoint.isNotice,
    acknowledges: ack ?? endpoint.acknowledges,
  };
}

function checked(endpoint: PushEndpoint): PushEndpoint {
  if (!endpoint.isNotice || !endpoint.acknowledges) return endpoint;
  throw new RelayError(
    "invalid_argument",
    "push_ack: a notice does not bring the message, so that its arrival cannot acknowledge it; give push_ack or notice, not both",
  );
}

function noWishForA2a(wished: "notice" | "push_ack"): RelayError {
  return new RelayError(
    "invalid_argument",
    `${wished}: with push: "a2a" the whole message is sent, and is acknowledged when the agent takes it; leave it out`,
  );
}

function requireUrl(callbackUrl: string | null, push: PushMode): string {
  if (callbackUrl !== null) return callbackUrl;
  throw new RelayError("invalid_argument", `push: "${push}" needs a callback_url, where messages are sent`);
}

function assertNothingWished({ notice, push_ack: ack }: PushWish): void {
  const wished = (notice === true && "notice") || (ack === true && "push_ack");
  if (wished === false) return;
  throw new RelayError(
    "invalid_argument",
    `${wished}: says how messages are pushed, so it needs push: "webhook"`,
  );
}

/** An event about an endpoint. `data` must hold no secret. */
export function pushEvent(
  type: Extract<EventType, `push.${string}`>,
  { agentId }: PushEndpoint,
  by: { readonly actor: string; readonly atMs: number },
  data: Readonly<Record<string, unknown>>,
): EventDraft {
  return { type, ...by, agentId, messageId: null, taskId: null, threadId: null, data };
}
