import assert from "node:assert/strict";
import type { AgentId, MessageInput, TaskView } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../src/core/access/principal.ts";
import type { OutboundAnswer, OutboundRequest } from "../src/transports/egress/http-client.ts";
import { workUnit } from "../src/core/mechanisms/own-claims.ts";
import type { AttemptResult } from "../src/core/outbound/push-delivery.ts";
import type { CoreSettings } from "../src/core/relay-core.ts";
import { type CoreOnMemory, coreOnMemory } from "./core-on-memory.ts";
import { anAnswer, FakeOutside } from "./fake-outside.ts";

export const AGENT_URL = "https://agent.example/助手";
export const AGENT = new URL(AGENT_URL).href as AgentId;

type Params = Readonly<Record<string, unknown>>;

/** An operation of A2A 1.0: returns the result, or throws `RpcError`. */
type Operation = (params: Params, request: OutboundRequest) => unknown;

/** Becomes an error of JSON-RPC. */
export class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** A remote agent of A2A 1.0 over JSON-RPC, scripted by a test. */
export class FakeAgent {
  readonly outside = new FakeOutside();
  /** Calls of operations, without requests for the card. */
  readonly calls: { readonly method: string; readonly params: Params }[] = [];
  send: Operation = () => ({ task: aRemoteTask() });
  get: Operation = () => aRemoteTask();
  cancel: Operation = () => aRemoteTask({ status: { state: "TASK_STATE_CANCELED" } });

  constructor() {
    this.outside.receiver = (request) => this.#answer(request);
  }

  calledFor(method: string): readonly Params[] {
    return this.calls.filter((call) => call.method === method).map(({ params }) => params);
  }

  async #answer(request: OutboundRequest): Promise<OutboundAnswer> {
    if (request.method === "GET") {
      const isCard = request.url === `${AGENT}/.well-known/agent-card.json`;
      return isCard ? anAnswer(200, { text: JSON.stringify(aCard()) }) : anAnswer(404);
    }
    const { method, params } = JSON.parse(request.body ?? "") as { method: string; params: Params };
    this.calls.push({ method, params });
    const operations: Readonly<Record<string, Operation>> = {
      SendMessage: this.send,
      GetTask: this.get,
      CancelTask: this.cancel,
    };
    try {
      const result = await operations[method]?.(params, request);
      return anAnswer(200, { text: JSON.stringify({ jsonrpc: "2.0", id: "1", result }) });
    } catch (reason) {
      if (!(reason instanceof RpcError)) throw reason;
      const error = { code: reason.code, message: reason.message };
      return anAnswer(200, { text: JSON.stringify({ jsonrpc: "2.0", id: "1", error }) });
    }
  }
}

export function aCard(said: object = {}): object {
  const supportedInterfaces = [{ url: `${AGENT}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  return { name: "助手", supportedInterfaces, ...said };
}

export function aRemoteTask(said: object = {}): object {
  return { id: "他们的任务", contextId: "他们的话题", status: { state: "TASK_STATE_WORKING" }, ...said };
}

export function saying(state: string, text: string, messageId = text): object {
  const message = { messageId, role: "ROLE_AGENT", parts: [{ text }] };
  return aRemoteTask({ status: { state: `TASK_STATE_${state}`, message } });
}

/** A core that sends to a remote agent, step by step. */
export interface RemoteCore extends CoreOnMemory {
  readonly agent: FakeAgent;
  /** Sends a request to the agent. */
  ask(message?: Partial<MessageInput>): Promise<{ readonly taskId: string; readonly messageId: string }>;
  /** Sends a request, pushes it, and records the agent's first answer. */
  taken(message?: Partial<MessageInput>): Promise<{ readonly taskId: string; readonly messageId: string }>;
  /** Pushes all due messages to an agent. */
  push(signal?: AbortSignal, agentId?: AgentId): Promise<readonly AttemptResult[]>;
  /** Polls all due remote tasks once. Returns how many there were. */
  poll(): Promise<number>;
  /** Advances the clock to the next poll, and polls. */
  pollNext(): Promise<void>;
  /** Time until the next poll. */
  waitMs(): Promise<number>;
  task(taskId: string): Promise<TaskView>;
}

export async function remoteCore(settings: Partial<CoreSettings> = {}): Promise<RemoteCore> {
  const agent = new FakeAgent();
  const core = await coreOnMemory(settings, agent.outside);
  const { pushDelivery, remoteWork } = core;
  const { signal: never } = new AbortController();
  const chooseDue = () => remoteWork.chooseDue([]);
  const ask: RemoteCore["ask"] = async (message = {}) => {
    const { receipt } = await core.send({ to: AGENT_URL, type: "request", body: "帮个忙", ...message });
    assert.ok(receipt.task_id !== undefined);
    return { taskId: receipt.task_id, messageId: receipt.message_id };
  };
  const push: RemoteCore["push"] = async (signal = never, agentId = AGENT) => {
    const key = { tenant: DEFAULT_TENANT, agentId };
    const claim = await core.claim(workUnit("endpoint", DEFAULT_TENANT, agentId));
    while (await pushDelivery.enqueue(key, claim)) continue;
    const results: AttemptResult[] = [];
    const { due } = await pushDelivery.chooseDue(key, new Set(), 8);
    for (const messageId of due) {
      const ended = await pushDelivery.attempt(key, messageId, { claim, signal });
      results.push(typeof ended === "string" ? ended : await pushDelivery.record(ended));
    }
    return results;
  };
  const poll: RemoteCore["poll"] = async () => {
    const { due } = await chooseDue();
    for (const task of due) {
      const claim = await core.claim(workUnit("remote-task", task.tenant, task.taskId));
      await remoteWork.poll(task, { claim, signal: never });
    }
    return due.length;
  };
  const waitMs: RemoteCore["waitMs"] = async () => (await chooseDue()).waitMs;
  const taken: RemoteCore["taken"] = async (message) => {
    const asked = await ask(message);
    assert.deepEqual(await push(), ["delivered"]);
    assert.equal(await poll(), 1);
    return asked;
  };
  const pollNext: RemoteCore["pollNext"] = async () => {
    core.clock.advance(await waitMs());
    assert.equal(await poll(), 1);
  };
  const task: RemoteCore["task"] = (taskId) => core.tasks.get(core.operator, taskId);
  return { ...core, agent, ask, taken, push, poll, pollNext, waitMs, task };
}
