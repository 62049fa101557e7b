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
  /** The agent's id at the relay, e.g. `translator@demo`. Callers reach it at `/agents/{agentId}/a2a`. */
  readonly agentId: string;
  /** The card of the executor, possibly partial; the relay sets its own addresses. */
  readonly card?: AgentCard | SdkAgentCard | undefined;
  /**
   * A name of this process that is the same after each start: work that it had begun when it was killed is executed
   * again, with the current task, once its lease has expired (`leaseMs`). Several processes of one name may run at
   * once, as in a rolling restart: none resumes the work of a live one. Default `executor`.
   */
  readonly worker?: string | undefined;
}

/** A running executor. */
export interface RunningAgent extends AsyncDisposable {
  readonly agent: RelayAgent;
  /** Like `RelayAgent.stop`; unfinished work is resumed after the next start. */
  stop(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

/**
 * Serves an A2A agent without running a server: an `AgentExecutor` of `@a2a-js/sdk`, behind any firewall, gets what A2A
 * callers send to the agent at the relay, and its events become the task that they see. Resolves when the agent is
 * registered and leases messages; `signal` bounds that.
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

/** A card in the SDK's own form marks its unions with `$case`. */
function cardIn(sdk: ExecutorSdk, card: AgentCard | SdkAgentCard | undefined): AgentCard | undefined {
  if (card === undefined) return undefined;
  const json = JSON.stringify(card);
  const isWritten = !json.includes('"$case":');
  return (isWritten ? JSON.parse(json) : sdk.AgentCard.toJSON(card as SdkAgentCard)) as AgentCard;
}
