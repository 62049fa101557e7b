import { type Stream, type StreamEnd, type WireAnswer, type WireRequest, WireServer } from "./wire-server.ts";

/** What an agent answers to one request of JSON-RPC: a result, an error, a stream, or whatever else. */
export type RpcAnswer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  | WireAnswer;

export type RpcMethods = Readonly<
  Record<
    string,
    (params: Readonly<Record<string, unknown>>, request: WireRequest) => RpcAnswer | Promise<RpcAnswer>
  >
>;

/** A hand-made agent of JSON-RPC, faults and all: its card, and each method as the test likes. */
export function startWireAgent(
  methods: RpcMethods,
  { card = {}, cardPath = "/.well-known/agent-card.json" }: WireAgentOptions = {},
): Promise<WireServer> {
  const agent: Promise<WireServer> = WireServer.start(async (request) => {
    if (request.method === "GET") {
      if (request.path !== cardPath) return { status: 404, text: "nothing here" };
      return {
        json:
          typeof card === "function" ? card((await agent).url) : { ...wireCard((await agent).url), ...card },
      };
    }
    const { id, method, params } = request.body;
    const answer = methods[String(method)];
    if (answer === undefined) {
      return {
        json: { jsonrpc: "2.0", id, error: { code: -32601, message: `no method ${String(method)}` } },
      };
    }
    const given = await answer((params ?? {}) as Readonly<Record<string, unknown>>, request);
    return isRpc(given) ? { json: { jsonrpc: "2.0", id, ...given } } : given;
  });
  return agent;
}

export interface WireAgentOptions {
  /** What the card says beside, or instead of, the usual; or all of it, with the agent's address. */
  readonly card?: Readonly<Record<string, unknown>> | ((url: string) => unknown);
  readonly cardPath?: string;
}

export function wireCard(url: string): Readonly<Record<string, unknown>> {
  return {
    name: "手工",
    description: "made by hand",
    version: "1",
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
}

/** Events as results of JSON-RPC, with an id each where one is given, and then the end. */
export function rpcStream(
  events: readonly (readonly [id: string, result: unknown])[],
  end: StreamEnd,
): WireAnswer {
  return {
    stream: streamOf(
      events.map(([id, result]) => [id, { jsonrpc: "2.0", id: 1, result }]),
      end,
    ),
  };
}

export function streamOf(events: readonly (readonly [id: string, data: unknown])[], end: StreamEnd): Stream {
  return (write) => {
    for (const [id, data] of events)
      write(`${id === "" ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
    return end;
  };
}

function isRpc(
  answer: RpcAnswer,
): answer is Extract<RpcAnswer, { readonly result: unknown } | { readonly error: object }> {
  return typeof answer === "object" && ("result" in answer || "error" in answer);
}
