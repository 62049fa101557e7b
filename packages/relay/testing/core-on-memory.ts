import { randomFillSync, randomUUID } from "node:crypto";
import type { AgentId, DeliveryView, MailboxItem, Message, MessageInput } from "@a2a-relay/protocol";
import { newKeyPair, type SigningKey, signingKey } from "../src/core/rules/ed25519.ts";
import {
  agentOf,
  type AgentPrincipal,
  DEFAULT_TENANT,
  operatorOf,
  type OperatorPrincipal,
} from "../src/core/access/principal.ts";
import type { Anchors, Archive } from "../src/core/ports/archive.ts";
import type { Claim, WorkUnit } from "../src/core/ports/claims.ts";
import { EgressPolicy } from "../src/core/rules/egress-policy.ts";
import type { HttpClient } from "../src/transports/egress/http-client.ts";
import type { Randomness } from "../src/core/ports/ids.ts";
import { TimeOrderedIds } from "../src/core/mechanisms/time-ordered-ids.ts";
import type { SendResult } from "../src/core/messages/decide-send.ts";
import { type CoreSettings, createCore, type RelayCore } from "../src/core/relay-core.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { openSqliteHandles } from "../src/stores/sqlite/sqlite-relay-store.ts";
import { GuardedOutbound } from "../src/transports/egress/guarded-outbound.ts";
import { HttpOutbound, type HttpOutboundSettings } from "../src/transports/outbound/http-outbound.ts";
import { FakeClock } from "./fake-clock.ts";
import { MemoryAnchors } from "./memory-anchors.ts";

export const LULU = "lulu@kamac" as AgentId;
export const ZHIWEI = "zhiwei@known-blocks1" as AgentId;

export const DAY_MS = 24 * 60 * 60 * 1_000;

const SETTINGS: CoreSettings = {
  messageTtlMs: 7 * DAY_MS,
  mailboxOpenMax: 1_000,
  leaseAttemptsMax: 3,
  capabilities: false,
  messageRetentionMs: 30 * DAY_MS,
  journalRetentionMs: 90 * DAY_MS,
  heartbeatMs: 15_000,
  a2aBlockMs: 30_000,
  pushAttemptsMs: [0, 5_000, 30_000, 120_000],
  version: "0.0.0-test",
  publicUrl: () => "http://relay.test",
};

const OUTBOUND: HttpOutboundSettings = {
  pushTimeoutMs: 15_000,
  userAgent: "a2a-relay/test",
  publicUrl: SETTINGS.publicUrl,
};

/** An archive that a test can read back. */
export class MemoryArchive implements Archive {
  readonly messages: object[] = [];
  readonly events: object[] = [];

  async append(stream: "messages" | "events", values: readonly object[]): Promise<void> {
    this[stream].push(...values);
  }
}

/** The whole core over a real store in memory, under a clock that stands still, with two agents. */
export interface CoreOnMemory extends RelayCore, AsyncDisposable {
  readonly store: RelayStore;
  readonly clock: FakeClock;
  readonly identity: SigningKey;
  readonly archive: MemoryArchive;
  readonly anchors: MemoryAnchors;
  readonly operator: OperatorPrincipal;
  readonly lulu: AgentPrincipal;
  readonly zhiwei: AgentPrincipal;
  /** Another core on the same database, as a second relay has: its own handle, claims, caches, mutexes and ids. */
  beside(own?: { readonly anchors: Anchors }): RelayCore;
  /** Claims for this core what no other holds. */
  claim(unit: WorkUnit): Promise<Claim>;
  /** Sends a note from lulu to zhiwei, or what is said instead. */
  send(message?: Partial<MessageInput>): Promise<SendResult>;
  /** All available messages of the agent, without marking them. */
  inboxOf(agent: string): Promise<readonly MailboxItem[]>;
  message(messageId: string): Promise<Message>;
  delivery(messageId: string): Promise<DeliveryView>;
  /** Leases the oldest message of zhiwei. */
  lease(options?: { readonly lease_ms?: number; readonly worker?: string }): Promise<Leased>;
}

export interface Leased {
  readonly message_id: string;
  readonly lease_id: string;
  readonly attempt: number;
}

export async function openMemoryStore(): Promise<RelayStore> {
  const newHandle = await openMemoryHandles();
  return newHandle();
}

function openMemoryHandles(): Promise<() => RelayStore> {
  return openSqliteHandles({
    path: ":memory:",
    checkpointPages: 1_000,
    onFatal: (reason) => {
      throw reason;
    },
  });
}

/** `outside` stands for everybody else's servers; without it they are called for real. */
export async function coreOnMemory(
  settings: Partial<CoreSettings> = {},
  outside?: HttpClient,
): Promise<CoreOnMemory> {
  const clock = new FakeClock();
  const archive = new MemoryArchive();
  const anchors = new MemoryAnchors();
  await using opening = new AsyncDisposableStack();
  const newHandle = await openMemoryHandles();
  const store = opening.use(newHandle());
  const randomness: Randomness = (bytes) => void randomFillSync(bytes);
  const identity = signingKey(newKeyPair().privateKey);
  const egress = new EgressPolicy(["127.0.0.0/8"]);
  const guarded = opening.use(new GuardedOutbound({ policy: egress }));
  const outbound = new HttpOutbound(outside ?? guarded, clock, OUTBOUND);
  const parts = { clock, randomness, identity, archive, anchors, egress, outbound };
  const newCore = (own: { readonly store: RelayStore; readonly anchors?: Anchors }): RelayCore =>
    createCore(
      { ...parts, ...own, owner: randomUUID(), ids: new TimeOrderedIds(clock, randomness) },
      { ...SETTINGS, ...settings },
    );
  const core = newCore({ store });
  const operator = operatorOf(DEFAULT_TENANT);
  await core.agents.register(operator, { agent_id: LULU, aliases: ["lulu"] });
  await core.agents.register(operator, { agent_id: ZHIWEI, aliases: ["zhiwei"] });
  const opened = opening.move();
  return {
    ...core,
    store,
    clock,
    identity,
    archive,
    anchors,
    operator,
    lulu: agentOf(DEFAULT_TENANT, LULU),
    zhiwei: agentOf(DEFAULT_TENANT, ZHIWEI),
    beside: (own) => newCore({ ...own, store: opened.use(newHandle()) }),
    ...shorthands(core, operator),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function shorthands(
  core: RelayCore,
  operator: OperatorPrincipal,
): Pick<CoreOnMemory, "claim" | "send" | "inboxOf" | "message" | "delivery" | "lease"> {
  return {
    claim: async (unit) => {
      const [claim] = await core.claims.take([unit]);
      if (claim === undefined) throw new Error(`another core holds ${unit.kind} ${unit.key}`);
      return claim;
    },
    send: (message = {}) =>
      core.messages.send(operator, { from: LULU, to: ZHIWEI, body: "知微你好", ...message }),
    inboxOf: async (agent) =>
      (await core.mailboxes.read(operator, agent, { peek: true, limit: 500 })).messages,
    message: async (messageId) => (await core.messages.get(operator, messageId)).message,
    delivery: async (messageId) => {
      const { delivery } = await core.messages.get(operator, messageId);
      if (delivery === undefined) throw new Error(`message ${messageId} has no delivery`);
      return delivery;
    },
    lease: async (options = {}) => {
      const [item] = (await core.mailboxes.lease(operator, ZHIWEI, options)).messages;
      if (item === undefined) throw new Error("there was nothing to lease");
      return { message_id: item.message_id, lease_id: item.lease.id, attempt: item.lease.attempt };
    },
  };
}
