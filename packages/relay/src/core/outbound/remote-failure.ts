import type { RelayError } from "@a2a-relay/protocol";
import type { OutboundAnswer, OutboundFailure } from "../ports/outbound-http.ts";
import { errorOfFailure, REASONS } from "./push-outcome.ts";

/**
 * `stopped`: we gave it up ourselves. `failed`: it was not taken, and may be some other time. `unknown`: it may have
 * been taken. `refused`: it was not taken, and will not be.
 */
export type RemoteFailureKind = "stopped" | "failed" | "unknown" | "refused";

/** An agent elsewhere did not answer as it should. `reason` is for everybody, `message` may name the host. */
export class RemoteFailure extends Error {
  override readonly name: string = "RemoteFailure";
  readonly kind: RemoteFailureKind;
  readonly reason: string;
  /** Undefined where there was none. */
  readonly answer: OutboundAnswer | undefined;
  /** What the agent itself named, in its own words. */
  readonly error: RelayError | undefined;

  constructor(
    kind: RemoteFailureKind,
    reason: string,
    more: {
      readonly answer?: OutboundAnswer | undefined;
      readonly error?: RelayError | undefined;
      readonly message?: string;
      readonly cause?: unknown;
    } = {},
  ) {
    super(more.message ?? reason, { cause: more.cause });
    this.kind = kind;
    this.reason = reason;
    this.answer = more.answer;
    this.error = more.error;
  }
}

/** There was no answer. */
export function unansweredFailure(failure: OutboundFailure, signal: AbortSignal): RemoteFailure {
  const { code, mayHaveArrived } = failure;
  const isStopped = code === "aborted" && signal.aborted;
  const kind = isStopped ? "stopped" : "failed";
  return new RemoteFailure(mayHaveArrived ? "unknown" : kind, REASONS[code], {
    message: errorOfFailure(failure),
    cause: failure,
  });
}

/** Of 4xx, those that are about the agent and its time, and not about what it was sent. */
const TROUBLED = new Set([408, 425, 429]);
/** Of 5xx, the one that says that nothing was begun. All others may come from the middle of the work, or after it. */
const UNAVAILABLE = 503;
const SERVER_ERRORS = 500;

/** An answer that says by its status alone that it is none. */
export function statusFailure(answer: OutboundAnswer): RemoteFailure {
  const { status } = answer;
  const reason = `the agent answered ${status}`;
  if (isBroken(answer)) return new RemoteFailure("unknown", reason, { answer });
  if (status >= 300 && status < 400) {
    return new RemoteFailure("failed", `${reason}; redirects are not followed, use the new address`, {
      answer,
    });
  }
  const isRefused = status >= 400 && status < 500 && !TROUBLED.has(status);
  return new RemoteFailure(isRefused ? "refused" : "failed", reason, { answer });
}

/** What passes, as another relay says it. */
const PASSING = new Set(["unavailable", "resource_exhausted", "mailbox_full", "storage_full"]);
/** No more than the status says too: whoever is in front of the agent has such words as well. */
const SAYS_NOTHING = new Set(["internal", "unavailable"]);
const WORDS_CHARS = 500;

/** An error that the agent itself has put into words. */
export function saidFailure(error: RelayError, answer: OutboundAnswer): RemoteFailure {
  const words = error.message.slice(0, WORDS_CHARS).toWellFormed();
  const said = `the agent answered: ${words}`;
  if (isBroken(answer) && SAYS_NOTHING.has(error.code)) {
    return new RemoteFailure("unknown", said, { answer, error });
  }
  const isPassing = PASSING.has(error.code) || TROUBLED.has(answer.status) || answer.status === UNAVAILABLE;
  if (isPassing) return new RemoteFailure("failed", said, { answer, error });
  return new RemoteFailure("refused", `the agent refused it: ${words}`, { answer, error });
}

function isBroken({ status }: OutboundAnswer): boolean {
  return status >= SERVER_ERRORS && status !== UNAVAILABLE;
}

/** Somebody answered, and not as an agent does. It is asked nothing more. */
export function foreignFailure(answer: OutboundAnswer, what: string): RemoteFailure {
  const reason = `the agent answered ${answer.status} with ${what}, which is not A2A; is this an agent's address?`;
  return new RemoteFailure("refused", reason, { answer });
}
