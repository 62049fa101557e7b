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
  /** The agent's id, e.g. `translator@demo`. Processes with the same id share its work. */
  readonly id: string;
  readonly displayName?: string | undefined;
  readonly aliases?: readonly string[] | undefined;
  readonly skills?: readonly Skill[] | undefined;
  /** An A2A card, possibly partial; the relay fills it. */
  readonly card?: AgentCard | undefined;
  /**
   * How long the agent counts as online after its last heartbeat, in milliseconds. Given, the agent sends a heartbeat
   * every third of it. Absent: no presence. Its mailbox accepts messages either way.
   */
  readonly ttlMs?: number | undefined;
  /**
   * How many messages are handled at a time. Default 4, since handlers mostly wait for I/O; with 1 they are handled in
   * the order of acceptance.
   */
  readonly concurrency?: number | undefined;
  /**
   * The duration of a lease, in milliseconds; the agent renews it every third of that while a handler runs. After this
   * time another process gets the idempotent work of a process that died. Default 60,000.
   */
  readonly leaseMs?: number | undefined;
  /**
   * A name of this process that is the same after each start. Given, the agent resumes work that it had begun when it
   * was stopped or killed, whether or not its sender declared it idempotent; handlers see that from `attempt`. It
   * resumes the work of a killed process when its lease has expired, after `leaseMs` at most: until then that process
   * may be alive, as in a rolling restart, and renews its leases. Absent: only idempotent work is begun again.
   */
  readonly worker?: string | undefined;
  /** How long the relay waits for messages before an empty answer, in milliseconds. Default 20,000. */
  readonly waitMs?: number | undefined;
  /**
   * How the agent gets its messages. `auto` uses a WebSocket where one can be opened, else a stream of server-sent
   * events, else long polls, and returns to the better one when it can. Default `auto`.
   */
  readonly transport?: InboxTransportChoice | undefined;
  /** How long `stop` waits for handlers before it aborts their signals, in milliseconds. Default 10,000. */
  readonly drainMs?: number | undefined;
  /**
   * Called for failures in the background: the relay is unreachable, a handler threw, a result was refused. The agent
   * continues after each of them. Absent: a warning on the console, once for each kind until it works again.
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
  /** Names this process among the agent's workers. Unique, or one process would release another's work. */
  readonly worker: string;
  /** The common name of earlier processes whose work this one resumes; undefined: it resumes none. */
  readonly resumes: string | undefined;
}

export const INBOX_TRANSPORT_CHOICES = ["auto", "websocket", "sse", "poll"] as const;
export type InboxTransportChoice = (typeof INBOX_TRANSPORT_CHOICES)[number];

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

/** Whether the worker is a process of that name, or leased under the name itself. */
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
  const choice = INBOX_TRANSPORT_CHOICES.find((each) => each === input);
  if (choice !== undefined) return choice;
  const choices = INBOX_TRANSPORT_CHOICES.join(", ");
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
