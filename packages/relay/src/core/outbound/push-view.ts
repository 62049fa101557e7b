import {
  formatInstant,
  type PushAttemptView,
  type PushEndpointView,
  type PushView,
} from "@a2a-relay/protocol";
import type { PushAttempt, PushEndpoint, PushRecord } from "../ports/pushes.ts";

/**
 * A push with its latest attempts. Only the agent and operators get `withAnswers`: what the receiver answered, and
 * which host did not answer.
 */
export function viewPush(
  push: PushRecord,
  attempts: readonly PushAttempt[],
  options: { readonly withAnswers: boolean },
): PushView {
  return {
    message_id: push.messageId,
    state: push.state,
    ...(push.reason === null ? {} : { reason: push.reason }),
    ...(push.nextAtMs === null ? {} : { next_attempt_at: formatInstant(push.nextAtMs) }),
    attempts: attempts.map((attempt) => viewAttempt(attempt, options)),
  };
}

/** The endpoint and the state of its pushes. Never the secret. */
export function viewEndpoint(
  endpoint: PushEndpoint,
  lately: { readonly pending: number; readonly pushes: readonly PushView[]; readonly nowMs: number },
): PushEndpointView {
  const { openUntilMs, oldSecretUntilMs, reason } = endpoint;
  const isOldGood = oldSecretUntilMs !== null && lately.nowMs < oldSecretUntilMs;
  return {
    agent_id: endpoint.agentId,
    push: endpoint.mode,
    callback_url: endpoint.url,
    notice: endpoint.isNotice,
    ack: endpoint.acknowledges,
    state: endpoint.state,
    ...(reason === null ? {} : { reason }),
    failures: endpoint.failures,
    circuit: openUntilMs === null ? "closed" : "open",
    ...(openUntilMs === null ? {} : { open_until: formatInstant(openUntilMs) }),
    pending: lately.pending,
    ...(isOldGood ? { old_secret_until: formatInstant(oldSecretUntilMs) } : {}),
    pushes: lately.pushes,
  };
}

const NO_ANSWER = "the endpoint gave no answer";

function viewAttempt(
  { attempt, atMs, durationMs, status, error, answer }: PushAttempt,
  { withAnswers }: { readonly withAnswers: boolean },
): PushAttemptView {
  return {
    attempt,
    at: formatInstant(atMs),
    duration_ms: durationMs,
    ...(status === null ? {} : { status }),
    ...(error === null ? {} : { error: withAnswers ? error : NO_ANSWER }),
    ...(answer === null || !withAnswers ? {} : { answer }),
  };
}
