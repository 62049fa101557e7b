import { once } from "node:events";
import { RelayClient } from "@a2a-relay/client";
import { InvalidArgumentError } from "commander";
import { type ClientConfig, loadClientConfig } from "../../config/load-config.ts";
import { readDotenv } from "../../config/setting-reader.ts";
import { type CliIo, Output } from "../terminal/output.ts";

export interface GlobalOptions extends ConnectionFlags {
  readonly json: boolean;
  readonly color: boolean;
}

export class CommandContext {
  readonly io: CliIo;
  readonly globals: GlobalOptions;
  readonly output: Output;
  readonly signal: AbortSignal;
  #connection: ClientConfig | undefined;
  #client: RelayClient | undefined;

  constructor(io: CliIo, globals: GlobalOptions) {
    this.io = io;
    this.globals = globals;
    this.output = new Output(io, globals);
    this.signal = io.signal;
  }

  /** Read at first use: commands that need no relay must not fail because of its address. */
  get connection(): ClientConfig {
    this.#connection ??= readConnection(this.globals, this.io);
    return this.#connection;
  }

  /** Resolves at Ctrl-C or SIGTERM. */
  async interrupted(): Promise<void> {
    if (!this.signal.aborted) await once(this.signal, "abort");
  }

  get client(): RelayClient {
    this.#client ??= connect(this.connection);
    return this.#client;
  }
}

interface ConnectionFlags {
  readonly relay?: string | undefined;
  readonly apiKey?: string | undefined;
}

// Enough for a short outage; a person at a terminal should soon hear that no relay answers.
export const RETRIES = 2;

export function connect(connection: ClientConfig): RelayClient {
  return new RelayClient({ ...connection, retries: RETRIES });
}

/** Which relay, and with which key: flags over environment over (for the key only) `.env`. */
function readConnection(flags: ConnectionFlags, io: CliIo): ClientConfig {
  try {
    return loadClientConfig({
      flags: { relay: flags.relay, "api-key": flags.apiKey },
      env: io.env,
      dotenv: readDotenv(io.workingDirectory),
    });
  } catch (reason) {
    throw new InvalidArgumentError(reason instanceof Error ? reason.message : String(reason));
  }
}
