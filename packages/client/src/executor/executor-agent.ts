import type { AgentCard as SdkAgentCard } from "@a2a-js/sdk";
import type { AgentExecutor } from "@a2a-js/sdk/server";
import type { AgentCard } from "@a2a-relay/protocol";
import { BackgroundErrors } from "../agent/background-errors.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import type { RelayAgentOptions } from "../agent/relay-agent-options.ts";
import { RelayAgent } from "../agent/relay-agent.ts";
import { type ExecutorSdk, loadExecutorSdk } from "./executor-sdk.ts";
import { ExecutorTurn } from "./executor-turn.ts";

export { RELAY_TASK_STATE } from "./executor-context.ts";

export interface ExecutorAgentOptions extends Omit<RelayAgentOptions, "id" | "card">, CallOptions {
  /** The agent's address at the relay, e.g. `translator@demo`. Callers reach it at `/agents/{agentId}/a2a`. */
  readonly agentId: string;
  /** The card that the executor's own server had, or a part of one; the relay puts its own addresses in. */
  readonly card?: AgentCard | SdkAgentCard | undefined;
  /**
   * A name of this process that is the same after each start: what it had begun when it was killed is executed again,
   * with the task as it stands, once its lease has run out (`leaseMs`). Until then it may be alive: where several run
   * at once, as in a rolling restart, none takes up what another works on. Default `executor`.
   */
  readonly worker?: string | undefined;
}

/** An executor at work, until it is stopped. */
export interface RunningAgent extends AsyncDisposable {
  readonly agent: RelayAgent;
  /** As of RelayAgent; what is not done within the time is taken up again after the next start. */
  stop(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

/**
 * Serves an A2A agent without running a server: an `AgentExecutor` of `@a2a-js/sdk` gets what A2A callers send to the
 * agent's address at the relay, from behind any firewall, and its events become the task that they see. Resolves when
 * the agent is registered and takes its mail; `signal` bounds that.
 */
export async function serveExecutor(
  executor: AgentExecutor,
  options: ExecutorAgentOptions,
): Promise<RunningAgent> {
  const sdk = await loadExecutorSdk();
  const { agentId, card, worker = "executor", signal, ...rest } = options;
  const agent = new RelayAgent({ ...rest, id: agentId, worker, card: cardIn(sdk, card) });
  const errors = new BackgroundErrors(agent.id, options.onError);
  const parts = { sdk, executor, client: agent.client, agentId: agent.id, errors };
  await agent.onTask((task) => new ExecutorTurn(parts, task).run()).start({ signal });
  return {
    agent,
    stop: (how) => agent.stop(how),
    [Symbol.asyncDispose]: () => agent.stop(),
  };
}

/** The SDK's form of a card differs from JSON where one of several things is meant, which it marks. */
function cardIn(sdk: ExecutorSdk, card: AgentCard | SdkAgentCard | undefined): AgentCard | undefined {
  if (card === undefined) return undefined;
  const json = JSON.stringify(card);
  const isWritten = !json.includes('"$case":');
  return (isWritten ? JSON.parse(json) : sdk.AgentCard.toJSON(card as SdkAgentCard)) as AgentCard;
}
