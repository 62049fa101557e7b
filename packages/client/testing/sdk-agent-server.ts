import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { AgentCard } from "@a2a-js/sdk";
import {
  DefaultExecutionEventBusManager,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type User,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express, { type Express, type Request } from "express";
import { SdkAgentExecutor } from "./sdk-agent-executor.ts";

export interface SdkAgentOptions {
  /** The binding that the card names. Default both, JSON-RPC first. */
  readonly binding?: SdkAgentBinding;
  /** A server of only 0.3 ignores the version header. Default 1.0. */
  readonly dialect?: SdkAgentDialect | "both";
  /** Default true. */
  readonly isStreaming?: boolean;
  /** Default true. */
  readonly hasPush?: boolean;
  /** Below which path the agent is, such as `/agents/小红`. Default none. */
  readonly path?: string;
  /** The A2A tenant that every interface names. */
  readonly tenant?: string;
  /** Callers without this bearer token get 401, except for the card. Only callers with it get the extended card. */
  readonly apiKey?: string;
  /** The name on the card. Default `sdk-agent`. */
  readonly name?: string;
  /** What else the card says. */
  readonly card?: Readonly<Record<string, unknown>>;
}

export type SdkAgentBinding = "JSONRPC" | "HTTP+JSON";
export type SdkAgentDialect = "1.0" | "0.3";

export interface SdkAgentRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** As the SDK has parsed it; undefined where there was none. */
  readonly body: unknown;
}

export interface SdkAgent extends AsyncDisposable {
  /** The base address, to which `/.well-known/agent-card.json` is added. */
  readonly url: string;
  readonly cardUrl: string;
  readonly rpcUrl: string;
  readonly restUrl: string;
  /** What came in so far, oldest first. */
  readonly requests: readonly SdkAgentRequest[];
  /** Completes a task that was told to `wait`. */
  finish(taskId: string, text: string): void;
}

/** An agent of the official SDK on loopback: what it does is told in `sdk-agent-executor.ts`. */
export async function startSdkAgent(options: SdkAgentOptions = {}): Promise<SdkAgent> {
  const app = express();
  const server = createServer(app);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.path ?? ""}`;
  const executor = new SdkAgentExecutor();
  const requests: SdkAgentRequest[] = [];
  mount(app, { url, options, executor, requests });
  return {
    url,
    cardUrl: `${url}/.well-known/agent-card.json`,
    rpcUrl: `${url}/rpc`,
    restUrl: `${url}/rest`,
    requests,
    finish: (taskId, text) => executor.finish(taskId, text),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Mounting {
  readonly url: string;
  readonly options: SdkAgentOptions;
  readonly executor: SdkAgentExecutor;
  readonly requests: SdkAgentRequest[];
}

function mount(app: Express, { url, options, executor, requests }: Mounting): void {
  const { path = "", apiKey } = options;
  const dialects = dialectsOf(options);
  const card = AgentCard.fromJSON(cardOf(url, options));
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor,
    new DefaultExecutionEventBusManager(),
    new InMemoryPushNotificationStore(),
    // What is posted to push URLs is no part of this server.
    { send: async () => undefined },
    AgentCard.fromJSON({ ...cardOf(url, options), description: "extended" }),
  );
  const legacyCompat = { enabled: dialects.includes("0.3") };
  const isOldOnly = !dialects.includes("1.0");
  app.use((request, _response, next) => {
    requests.push(requestOf(request));
    if (isOldOnly) delete request.headers["a2a-version"];
    next();
  });
  app.use(
    `${encodeURI(path)}/.well-known/agent-card.json`,
    agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }),
  );
  app.use((request, response, next) => {
    if (apiKey === undefined || request.headers.authorization === `Bearer ${apiKey}`) next();
    else response.status(401).json({ error: "who are you?" });
  });
  const known = async (): Promise<User> => ({ isAuthenticated: true, userName: "known" });
  const userBuilder = apiKey === undefined ? UserBuilder.noAuthentication : known;
  const shared = { requestHandler, userBuilder, legacyCompat };
  app.use(`${encodeURI(path)}/rpc`, jsonRpcHandler(shared));
  app.use(`${encodeURI(path)}/rest`, restHandler(shared));
}

function cardOf(url: string, options: SdkAgentOptions): Record<string, unknown> {
  const { binding, tenant, name = "sdk-agent", isStreaming = true, hasPush = true } = options;
  const bindings: readonly SdkAgentBinding[] = binding === undefined ? ["JSONRPC", "HTTP+JSON"] : [binding];
  const supportedInterfaces = bindings.flatMap((protocolBinding) =>
    dialectsOf(options).map((protocolVersion) => ({
      url: protocolBinding === "JSONRPC" ? `${url}/rpc` : `${url}/rest`,
      protocolBinding,
      protocolVersion,
      ...(tenant === undefined ? {} : { tenant }),
    })),
  );
  return {
    name,
    description: "回声：an agent that does what the first word says",
    version: "1.2.3",
    supportedInterfaces,
    capabilities: { streaming: isStreaming, pushNotifications: hasPush, extendedAgentCard: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "echo", name: "Echo", description: "says it again", tags: ["test"] }],
    ...options.card,
  };
}

function dialectsOf({ dialect = "1.0" }: SdkAgentOptions): readonly SdkAgentDialect[] {
  return dialect === "both" ? ["1.0", "0.3"] : [dialect];
}

function requestOf(request: Request): SdkAgentRequest {
  const url = new URL(request.originalUrl, "http://localhost");
  return {
    method: request.method,
    path: url.pathname,
    query: url.searchParams,
    headers: { ...request.headers },
    // The SDK's own parser reads it, later than this.
    get body() {
      return request.body as unknown;
    },
  };
}
