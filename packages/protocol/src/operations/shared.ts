import { Type } from "typebox";
import type { RelayErrorCode } from "../base/relay-error.ts";
import { ServedCardSchema } from "../model/agent.ts";

/** Requests that name an agent by id, alias or display name. */
export const AGENT_ERRORS = ["unknown_agent", "ambiguous_agent"] as const satisfies readonly RelayErrorCode[];

/** Work under a lease. */
export const WORK_ERRORS = [
  "not_found",
  "conflict",
  "lease_required",
  "lease_lost",
  "task_canceled",
  "task_finished",
  "wrong_state",
] as const satisfies readonly RelayErrorCode[];

export const SEND_ERRORS = [
  ...AGENT_ERRORS,
  ...WORK_ERRORS,
  "mailbox_full",
] as const satisfies readonly RelayErrorCode[];

/** For operations over the whole store: the first one on a large relay is slow. */
export const SLOW_MS_MAX = 10 * 60_000;

/** An A2A card. */
export const cardAnswers = {
  200: { description: "The card", schema: ServedCardSchema },
  304: { description: "The caller has the current card" },
} as const;

export const TextSchema = Type.String();
