import type { RelayConfig } from "./relay-config.ts";
import { integerSetting, type Setting } from "./setting.ts";

const SECOND_MS = 1_000;

const CARD_DIALECTS = ["1.0", "0.3"] as const satisfies readonly RelayConfig["cardDialect"][];

const a2aBlockMs = integerSetting({
  variables: ["A2A_RELAY_A2A_BLOCK_MS"],
  flag: "a2a-block-ms",
  meaning:
    "How long a blocking A2A send waits for its task before it is answered with the task as it stands.",
  fallback: 30 * SECOND_MS,
  minimum: 0,
  maximum: 600 * SECOND_MS,
});

const grpcPort: Setting<number | undefined> = {
  variables: ["A2A_RELAY_GRPC_PORT"],
  flag: "grpc-port",
  placeholder: "number",
  meaning: "The port for A2A over gRPC, on the same address; 0 picks a free one. Without it: no gRPC.",
  fallback: undefined,
  parse: (text, complain) => {
    const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
    return number <= 65_535 ? number : complain("a whole number from 0 to 65535");
  },
};

const cardDialect: Setting<RelayConfig["cardDialect"]> = {
  variables: ["A2A_RELAY_CARD_DIALECT"],
  flag: "card-dialect",
  placeholder: "version",
  meaning: "The version of A2A in which cards are written for clients that do not say theirs: 1.0 or 0.3.",
  fallback: "1.0",
  parse: (text, complain) =>
    CARD_DIALECTS.find((dialect) => dialect === text) ?? complain(CARD_DIALECTS.join(" or ")),
};

/** How the relay speaks A2A. */
export const A2A_SETTINGS = { a2aBlockMs, grpcPort, cardDialect } as const;
