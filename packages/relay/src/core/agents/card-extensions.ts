import {
  AVAILABILITY_EXTENSION,
  formatInstant,
  IDEMPOTENCY_KEY_EXTENSION,
  RELAY_EXTENSIONS,
  STREAM_RESUME_EXTENSION,
} from "@a2a-relay/protocol";
import type { AgentWithPresence } from "../ports/agents.ts";
import type { CardSettings } from "./card-interfaces.ts";
import { presenceOf } from "./presence.ts";

export interface CardExtension {
  readonly uri: string;
  readonly description: string;
  readonly required: boolean;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** What the relay does on top of A2A, for whomever it speaks. Nobody has to know of it. */
export const COMMON_EXTENSIONS: readonly CardExtension[] = [
  {
    uri: STREAM_RESUME_EXTENSION,
    description: "Events of streams have ids; a subscription with Last-Event-ID brings what was missed",
    required: false,
  },
  {
    uri: IDEMPOTENCY_KEY_EXTENSION,
    description: "A message sent again with the same Idempotency-Key is the same message",
    required: false,
  },
];

/** Whether the agent is there, and what happens to messages while it is not. */
export function availability(
  found: AgentWithPresence,
  { messageTtlMs }: CardSettings,
  nowMs: number,
): CardExtension {
  const { lastSeenAtMs } = found;
  return {
    uri: AVAILABILITY_EXTENSION,
    description: "Whether the agent is there; messages wait for it while it is not",
    required: false,
    params: {
      presence: presenceOf(found, nowMs),
      ...(lastSeenAtMs === null ? {} : { last_seen_at: formatInstant(lastSeenAtMs) }),
      offline_delivery: true,
      message_ttl_ms: messageTtlMs,
    },
  };
}

/** Those that only the relay can speak for. */
export function isOurs(uri: unknown): boolean {
  return (RELAY_EXTENSIONS as readonly unknown[]).includes(uri);
}
