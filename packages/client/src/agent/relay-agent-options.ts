import {
  type AgentCard,
  LIMITS,
  parseAgentId,
  quote,
  type RegisterRequest,
  RelayError,
  type Skill,
} from "@a2a-relay/protocol";
import type { OnAgentError } from "./background-errors.ts";
import { createIdempotencyKey } from "../http/idempotency.ts";
import { parseInteger, type RelayClientOptions } from "../http/relay-client-options.ts";

export interface RelayAgentOptions extends RelayClientOptions {
  /** The agent's address, e.g. `translator@demo`. Processes that share it share its work. */
  readonly id: string;
  readonly displayName?: string | undefined;
  readonly aliases?: readonly string[] | undefined;
  readonly skills?: readonly Skill[] | undefined;
  /** An A2A card, possibly partial; the relay fills it. */
  readonly card?: AgentCard | undefined;
  /**
   * How long the agent counts as online after its last sign of life, in milliseconds. Given, the agent sends
   * a heartbeat every third of it. Absent: it shows no presence. Its mailbox takes mail either way.
   */
  readonly ttlMs?: number | undefined;
  /**
   * How many messages are handled at a time. Default 4, since handlers mostly wait for something else; with
   * 1 they are handled in the order in which they were accepted.
   */
  readonly concurrency?: number | undefined;
  /**
   * How long a message is this process's own without a renewal, in milliseconds; it is renewed every third
   * of that while a handler runs. Idempotent work of a process that died is given to another after this
   * time. Default 60,000.
   */
  readonly leaseMs?: number | undefined;
  /**
   * A name of this process that is the same after each start. Given, the agent takes up again what it had begun when it
   * was stopped or killed, whatever its sender said about doing work twice; its handlers see that from `attempt`. What
   * a killed process had is taken up when its lease has run out, after `leaseMs` at most: until then it may be alive,
   * as in a rolling restart, and renews what it works on. Absent: only work that its sender declared idempotent is
   * begun again.
   */
  readonly worker?: string | undefined;
  /** How long the relay holds an empty answer back, in milliseconds. Default 20,000. */
  readonly waitMs?: number | undefined;
  /**
   * How the agent hears of mail. `auto` takes a WebSocket where one can be opened, else a stream of server-sent events,
   * else long polls, and comes back to the better one when it can. Default `auto`.
   */
  readonly transport?: InboxTransportChoice | undefined;
  /** How long `stop` waits for handlers before it aborts their signals, in milliseconds. Default 10,000. */
  readonly drainMs?: number | undefined;
  /**
   * Hears of failures in the background: the relay is away, a handler threw, a result was refused. The agent
   * goes on after each of them. Absent: a warning on the console, once for each kind until it works again.
   */
  readonly onError?: OnAgentError | undefined;
}

export interface FilledAgentOptions {
  readonly id: string;
  readonly registration: RegisterRequest;
  readonly ttlMs: number | undefined;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly transport: InboxTransportChoice;
  readonly drainMs: number;
  /** Names this process among the agent's workers. Never shared, or one would release another's work. */
  readonly worker: string;
  /** What the names of earlier processes begin with whose unfinished work is this one's; undefined: there are none. */
  readonly resumes: string | undefined;
}

export const MAIL_TRANSPORT_CHOICES = ["auto", "websocket", "sse", "poll"] as const;
export type InboxTransportChoice = (typeof MAIL_TRANSPORT_CHOICES)[number];

export const DRAIN_MS_RANGE = { min: 0, max: 3_600_000 };

export function fillAgentOptions(options: RelayAgentOptions): FilledAgentOptions {
  const id = parseAgentId(options.id, "id");
  const ttlMs =
    options.ttlMs === undefined
      ? undefined
      : parseInteger("ttlMs", options.ttlMs, { min: LIMITS.agentTtlMsMin, max: LIMITS.agentTtlMsMax });
  return Object.freeze({
    id,
    registration: registrationOf(id, options, ttlMs),
    ttlMs,
    concurrency: parseInteger("concurrency", options.concurrency ?? 4, { min: 1, max: LIMITS.leaseCountMax }),
    leaseMs: parseInteger("leaseMs", options.leaseMs ?? 60_000, {
      min: LIMITS.leaseMsMin,
      max: LIMITS.leaseMsMax,
    }),
    waitMs: parseInteger("waitMs", options.waitMs ?? 20_000, { min: 0, max: LIMITS.waitMsMax }),
    transport: parseTransport(options.transport ?? "auto"),
    drainMs: parseInteger("drainMs", options.drainMs ?? 10_000, DRAIN_MS_RANGE),
    ...workerOf(options.worker),
  });
}

/** Whether the worker is this or another process of that name, or whoever leased under the name itself. */
export function isNamed(worker: string, name: string): boolean {
  return worker.replace(OF_PROCESS, "") === name;
}

const OF_PROCESS = /#[0-9a-f]{12}$/;
const OF_PROCESS_CHARS = 13;

function workerOf(input: unknown): Pick<FilledAgentOptions, "resumes" | "worker"> {
  const key = createIdempotencyKey();
  if (input === undefined) return { worker: `worker-${key}`, resumes: undefined };
  const charsMax = LIMITS.idCharsMax - OF_PROCESS_CHARS;
  if (typeof input === "string" && input !== "" && input.length <= charsMax) {
    return { worker: `${input}#${key.slice(-12)}`, resumes: input };
  }
  const expected = `expected a name of 1 to ${charsMax} characters`;
  throw new RelayError("invalid_argument", `worker: ${expected}, got ${quote(input)}`);
}

function parseTransport(input: unknown): InboxTransportChoice {
  const choice = MAIL_TRANSPORT_CHOICES.find((known) => known === input);
  if (choice !== undefined) return choice;
  const choices = MAIL_TRANSPORT_CHOICES.join(", ");
  throw new RelayError("invalid_argument", `transport: expected one of ${choices}, got ${quote(input)}`);
}

function registrationOf(id: string, options: RelayAgentOptions, ttlMs: number | undefined): RegisterRequest {
  const { displayName, aliases, skills, card } = options;
  return {
    agent_id: id,
    ...(displayName === undefined ? {} : { display_name: displayName }),
    ...(aliases === undefined ? {} : { aliases: [...aliases] }),
    ...(skills === undefined ? {} : { skills: [...skills] }),
    ...(card === undefined ? {} : { card }),
    ...(ttlMs === undefined ? {} : { ttl_ms: ttlMs }),
  };
}
