import { readFile } from "node:fs/promises";
import { A2AClient, type A2AClientOptions, type Fetch } from "@a2a-relay/client";
import {
  A2A_VERSIONS,
  a2aEndpoints,
  type A2aVersion,
  operations,
  pathOf,
  RelayError,
} from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ClientConfig } from "../../../config/load-config.ts";
import { type CommandContext, RETRIES } from "../../command-line/command-context.ts";
import { parseHead } from "../../command-line/input.ts";
import { visibleLine } from "../../terminal/text.ts";

export interface CallOptions {
  readonly dialect?: A2aVersion;
  readonly headers?: string;
}

// Agents may work before they answer. `fetch` itself gives up after five minutes.
const TIMEOUT_MS = 240_000;

export function addCallOptions(command: Command): Command {
  const dialect = new Option(
    "--dialect <version>",
    "speak this version of A2A; without it: the best that both know",
  );
  return addHeadersOption(command.addOption(dialect.choices(A2A_VERSIONS)));
}

/** For a command that only reads a card, which needs no dialect. */
export function addHeadersOption(command: Command): Command {
  return command.option(
    "--headers <file>",
    "headers to send along, one a line or as a JSON object, such as credentials",
  );
}

/** The agent of the first operand: by its address, or one of the relay by its name. */
export async function callAgent(
  context: CommandContext,
  target: string,
  options: CallOptions,
): Promise<CalledAgent> {
  const { dialect } = options;
  const shared = {
    dialect,
    headers: await readHeaders(options),
    fetch: fetchWithKey(context.connection),
    retries: RETRIES,
    timeoutMs: TIMEOUT_MS,
  };
  if (!/^https?:\/\//i.test(target)) return new RelayedAgent(context, target, shared);
  return new OutsideAgent(target, shared);
}

/** An A2A agent to call. Errors are worded for a command line. */
export interface CalledAgent {
  /** Its words on a command line, for advice on the next command. */
  readonly words: readonly string[];
  /** Reads its card. */
  readonly cards: A2AClient;
  call<T>(act: (client: A2AClient) => Promise<T>): Promise<T>;
}

type SharedOptions = Omit<A2AClientOptions, "url" | "card">;

class OutsideAgent implements CalledAgent {
  readonly words: readonly string[];
  readonly cards: A2AClient;

  constructor(url: string, shared: SharedOptions) {
    this.words = wordsOf(url, shared);
    this.cards = openClient({ ...shared, url });
  }

  async call<T>(act: (client: A2AClient) => Promise<T>): Promise<T> {
    try {
      return await act(this.cards);
    } catch (reason) {
      if (!(reason instanceof RelayError)) throw reason;
      const { code, message, details } = reason;
      // Under their own codes the command line would give advice about the relay it is connected to.
      if (code === "unknown_agent") throw new RelayError("not_found", message, { details, cause: reason });
      if (code !== "unauthenticated") throw reason;
      const advice = "here that is --headers; a key of the relay is not sent to other agents";
      throw new RelayError("permission_denied", `${message}; ${advice}`, { cause: reason });
    }
  }
}

/** Its card may name other addresses first; only the relay's address as given is called. */
class RelayedAgent implements CalledAgent {
  readonly words: readonly string[];
  readonly cards: A2AClient;
  readonly #context: CommandContext;
  readonly #name: string;
  readonly #client: A2AClient;

  constructor(context: CommandContext, name: string, shared: SharedOptions) {
    if (name === "") throw new InvalidArgumentError("expected the name of an agent, or its address");
    const base = baseOf(context.connection).replace(/\/$/, "");
    const url = base + pathOf(a2aEndpoints.a2a.agent, { agent_id: name });
    const protocolVersion = shared.dialect ?? "1.0";
    const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion }];
    const card = { name, supportedInterfaces, capabilities: { streaming: true } };
    this.words = wordsOf(name, shared);
    this.cards = openClient({ ...shared, url: base + pathOf(operations.agents.card, { id: name }) });
    this.#client = openClient({ ...shared, card });
    this.#context = context;
    this.#name = name;
  }

  async call<T>(act: (client: A2AClient) => Promise<T>): Promise<T> {
    try {
      return await act(this.#client);
    } catch (reason) {
      const code = reason instanceof RelayError ? reason.code : undefined;
      if (code === "internal" || code === "unavailable") await this.#explain();
      throw reason;
    }
  }

  /** A2A has no error for an unknown agent; the relay has one, and this throws it. */
  async #explain(): Promise<void> {
    const { client, signal } = this.#context;
    await client.agent(this.#name, { signal });
  }
}

function openClient(options: A2AClientOptions): A2AClient {
  try {
    return new A2AClient(options);
  } catch (reason) {
    throw new InvalidArgumentError(reason instanceof Error ? reason.message : String(reason));
  }
}

/** Sends the relay's key to the relay only, wherever a card or a redirect leads. */
function fetchWithKey(connection: ClientConfig): Fetch {
  const { apiKey } = connection;
  const base = baseOf(connection);
  return (url, init) => {
    const headers = new Headers(init.headers);
    const isRelay = new URL(url).href.startsWith(base);
    if (isRelay && apiKey !== undefined && !headers.has("authorization")) {
      headers.set("authorization", `Bearer ${apiKey}`);
    }
    return fetch(url, { ...init, headers });
  };
}

function baseOf({ url }: ClientConfig): string {
  return new URL(url).href.replace(/\/*$/, "/");
}

async function readHeaders({ headers: file }: CallOptions): Promise<Readonly<Record<string, string>>> {
  if (file === undefined) return {};
  try {
    return parseHead(await readFile(file, "utf8"));
  } catch (cause) {
    if (cause instanceof InvalidArgumentError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(visibleLine(`--headers: ${why}`));
  }
}

function wordsOf(target: string, { dialect }: SharedOptions): readonly string[] {
  return dialect === undefined ? [target] : [target, "--dialect", dialect];
}
