import { RelayError } from "@a2a-relay/protocol";

/** What an agent was doing in the background when an error happened. */
export type AgentActivity =
  | "register"
  | "heartbeat"
  | "lease"
  | "renew"
  | "task"
  | "message"
  | "report"
  | "settle";

/** May be async; the returned value is ignored. */
export type OnAgentError = (error: Error, activity: AgentActivity) => unknown;

const WARNED_KINDS_MAX = 100;

/** Reports failures of background work, so that none becomes an unhandled rejection. */
export class BackgroundErrors {
  readonly #agentId: string;
  readonly #onError: OnAgentError | undefined;
  readonly #warned = new Set<string>();

  constructor(agentId: string, onError: OnAgentError | undefined) {
    this.#agentId = agentId;
    this.#onError = onError;
  }

  report(reason: unknown, activity: AgentActivity): void {
    const error = reason instanceof Error ? reason : new Error(String(reason));
    if (this.#onError === undefined) this.#warnOnce(error, activity);
    else void this.#tell(this.#onError, error, activity);
  }

  /** The next failure of this activity is warned of again. */
  recovered(activity: AgentActivity): void {
    for (const kind of this.#warned) if (kind.startsWith(`${activity} `)) this.#warned.delete(kind);
  }

  /** Never rejects: a failing callback must not end the agent. */
  async #tell(onError: OnAgentError, error: Error, activity: AgentActivity): Promise<void> {
    try {
      await onError(error, activity);
    } catch (failure) {
      this.#warnOnce(failure, "report");
    }
  }

  /** An unreachable relay must not fill the log. */
  #warnOnce(reason: unknown, activity: AgentActivity): void {
    const text = reason instanceof Error ? reason.message : String(reason);
    const kind = `${activity} ${reason instanceof RelayError ? reason.code : text}`;
    if (this.#warned.has(kind)) return;
    if (this.#warned.size >= WARNED_KINDS_MAX) this.#warned.clear();
    this.#warned.add(kind);
    // oxlint-disable-next-line no-console -- the documented default of a program that set no `onError`
    console.warn(`a2a-relay agent ${this.#agentId}, ${activity}: ${text}`);
  }
}
