import type { RelayClient } from "@a2a-relay/client";
import type { ClientConfig } from "../../config/client-config.ts";
import type { CliIo } from "../terminal/cli-io.ts";
import { connect, type ConnectionFlags, readConnection } from "./connection.ts";
import { Output } from "../terminal/output.ts";

export interface GlobalOptions extends ConnectionFlags {
  readonly json: boolean;
  readonly color: boolean;
}

/** What a command works with. */
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

  /** Read at first use, so that commands which need no relay do not complain about its address. */
  get connection(): ClientConfig {
    this.#connection ??= readConnection(this.globals, this.io);
    return this.#connection;
  }

  get client(): RelayClient {
    this.#client ??= connect(this.connection);
    return this.#client;
  }
}
