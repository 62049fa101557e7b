import { type A2aOperation, type A2aVersion, RelayError } from "@a2a-relay/protocol";
import type { A2aPage } from "../../core/a2a/a2a-streams.ts";
import { type A2aCaller, isForRelay, targetOf } from "../../core/a2a/a2a-request.ts";
import type { Principal } from "../../core/access/principal.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import type { WaitOptions } from "../../core/mechanisms/wait-options.ts";

/** One A2A request of any binding; its params are in 1.0. */
export interface A2aCall extends WaitOptions {
  readonly principal: Principal;
  readonly version: A2aVersion;
  /** The agent that the path or the A2A tenant field names; undefined: the relay's own endpoint. */
  readonly agentName: string | undefined;
  readonly extensions: readonly string[];
  readonly idempotencyKey: string | undefined;
  /** The last event that the reader received. */
  readonly lastEventId: string | undefined;
}

/** In 1.0; the binding writes it in the caller's dialect. */
export type A2aReply =
  | { readonly result: Readonly<Record<string, unknown>>; readonly pages?: undefined }
  | { readonly pages: AsyncIterable<A2aPage>; readonly result?: undefined };

type Params = Readonly<Record<string, unknown>>;

/** All operations of A2A, for every binding and dialect. */
export class A2aHandler {
  readonly #core: Pick<RelayCore, "a2a" | "a2aCards" | "a2aPushes" | "relayAgent">;

  constructor(core: Pick<RelayCore, "a2a" | "a2aCards" | "a2aPushes" | "relayAgent">) {
    this.#core = core;
  }

  /** Whether the caller chose this task id itself, as only callers of 0.1 do. */
  isNamedByCaller(principal: Principal, taskId: string): Promise<boolean> {
    return this.#core.a2a.isNamedByCaller(principal, taskId);
  }

  async handle(operation: A2aOperation, params: Params, call: A2aCall): Promise<A2aReply> {
    const { a2a, a2aCards, a2aPushes, relayAgent } = this.#core;
    const { principal, version, extensions, idempotencyKey } = call;
    const name = targetOf(operation, params, call.agentName);
    const agentId = name === undefined ? undefined : await a2a.resolve(principal, name);
    const caller: A2aCaller = { principal, agentId, version, extensions, idempotencyKey };
    const isOwn = agentId === undefined && isForRelay(params);
    switch (operation) {
      case "send":
        if (isOwn) return { result: await relayAgent.answer(principal, params) };
        return { result: { ...(await a2a.send(caller, params, call)) } };
      case "stream":
        if (isOwn) return { pages: onePage(await relayAgent.answer(principal, params)) };
        return { pages: await a2a.stream(caller, params, call) };
      case "subscribe": {
        const afterN = readEventId(call.lastEventId);
        return { pages: await a2a.subscribe(caller, params, { signal: call.signal, afterN }) };
      }
      case "get":
        return { result: await a2a.get(caller, params) };
      case "list":
        return { result: { ...(await a2a.list(caller, params)) } };
      case "cancel":
        return { result: await a2a.cancel(caller, params) };
      case "push-create":
        return { result: await a2aPushes.create(caller, params) };
      case "push-get":
        return { result: await a2aPushes.get(caller, params) };
      case "push-list":
        return { result: { ...(await a2aPushes.list(caller, params)) } };
      case "push-delete":
        await a2aPushes.delete(caller, params);
        return { result: {} };
      default:
        return { result: await a2aCards.extended(caller) };
    }
  }
}

async function* onePage(result: { readonly message: object }): AsyncGenerator<A2aPage> {
  yield { events: [{ n: 0, event: result as A2aPage["events"][number]["event"], isFinal: true }] };
}

/** The number of the last update that a reader of a stream has received. */
function readEventId(lastEventId: string | undefined): number | undefined {
  if (lastEventId === undefined || lastEventId === "") return undefined;
  if (/^\d{1,9}$/.test(lastEventId)) return Number(lastEventId);
  throw new RelayError(
    "invalid_argument",
    `Last-Event-ID: "${lastEventId}" is no id of an event of this stream`,
  );
}
