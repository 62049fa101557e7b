import { RelayClient } from "@a2a-relay/client";
import { InvalidArgumentError } from "commander";
import { type ClientConfig, loadClientConfig } from "../../config/client-config.ts";
import { readDotenv } from "../../config/environment.ts";
import type { CliIo } from "../terminal/cli-io.ts";

export interface ConnectionFlags {
  readonly relay?: string | undefined;
  readonly apiKey?: string | undefined;
}

// Enough to bridge a hiccup; a person at a terminal should soon hear that nobody is there.
export const RETRIES = 2;

export function connect(connection: ClientConfig): RelayClient {
  return new RelayClient({ ...connection, retries: RETRIES });
}

/** Which relay, and with which key: flags over environment over (for the key only) `.env`. */
export function readConnection(flags: ConnectionFlags, io: CliIo): ClientConfig {
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
