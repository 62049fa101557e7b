import { A2aCardService, type A2aCardSettings } from "./a2a/a2a-cards.ts";
import { A2aPushService } from "./a2a/a2a-push-service.ts";
import { A2aService, type A2aSettings } from "./a2a/a2a-service.ts";
import { A2aTasks } from "./a2a/a2a-tasks.ts";
import { RelayAgentService } from "./a2a/relay-agent-service.ts";
import { TaskPushDelivery } from "./outbound/task-push-delivery.ts";
import { CapabilityGate, type TenantSettings } from "./access/capability-gate.ts";
import { CapabilityService } from "./keys/capability-service.ts";
import { CapabilityValidity } from "./access/capability-token.ts";
import type { SigningKey } from "./rules/ed25519.ts";
import { Guard } from "./access/guard.ts";
import { KeyMaker } from "./keys/key-maker.ts";
import { KeyService } from "./keys/key-service.ts";
import { RefusedCallers } from "./access/refused-callers.ts";
import { TenantService } from "./keys/tenant-service.ts";
import { AgentService, type AgentSettings } from "./registration/agent-service.ts";
import { Directory } from "./agents/directory.ts";
import { RemoteAgents } from "./registration/remote-agents.ts";
import type { Anchors, Archive } from "./ports/archive.ts";
import type { Clock } from "./ports/clock.ts";
import type { EgressPolicy } from "./rules/egress-policy.ts";
import type { Identifiers, Randomness } from "./ports/ids.ts";
import type { Outbound } from "./ports/outbound.ts";
import { Throttle } from "./mechanisms/throttle.ts";
import { JournalService, Readiness } from "./journal/journal-service.ts";
import type { RelayStore } from "./ports/relay-store.ts";
import { OwnClaims } from "./mechanisms/own-claims.ts";
import { KeyedMutex } from "./mechanisms/keyed-mutex.ts";
import { WaitQuota } from "./access/wait-quota.ts";
import { Anchoring } from "./journal/anchoring.ts";
import { Retention } from "./journal/retention.ts";
import { MailboxService } from "./mailboxes/mailbox-service.ts";
import { RepairService } from "./mailboxes/repair-service.ts";
import { Sweep } from "./mailboxes/sweep.ts";
import { MessageService } from "./messages/message-service.ts";
import { SignedInbox } from "./messages/signed-inbox.ts";
import { PushDelivery, type PushSettings } from "./outbound/push-delivery.ts";
import { PushService } from "./outbound/push-service.ts";
import { RemoteWork } from "./outbound/remote-work.ts";
import { TaskQueueService } from "./queue/task-queue-service.ts";
import { TaskService } from "./tasks/task-service.ts";

export interface CoreParts {
  readonly store: RelayStore;
  /** Tells the claims of this process from those of others on the same store. */
  readonly owner: string;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly randomness: Randomness;
  /** The relay's own key, with which it signs capabilities. */
  readonly identity: SigningKey;
  readonly archive: Archive;
  readonly anchors: Anchors;
  /** Which addresses agents may ask the relay to call. */
  readonly egress: EgressPolicy;
  readonly outbound: Outbound;
}

export interface CoreSettings
  extends A2aCardSettings, A2aSettings, AgentSettings, PushSettings, TenantSettings {
  readonly mailboxOpenMax: number;
  readonly leaseAttemptsMax: number;
  readonly messageRetentionMs: number;
  readonly journalRetentionMs: number;
  /** How often an idle stream gets a heartbeat. */
  readonly heartbeatMs: number;
}

/** All rules of the relay, put together once. Every wire calls these and nothing else. */
export interface RelayCore {
  readonly guard: Guard;
  readonly a2a: A2aService;
  readonly a2aCards: A2aCardService;
  readonly a2aPushes: A2aPushService;
  readonly agents: AgentService;
  readonly anchoring: Anchoring;
  readonly capabilities: CapabilityService;
  readonly claims: OwnClaims;
  readonly inbox: SignedInbox;
  readonly journal: JournalService;
  readonly keys: KeyService;
  readonly mailboxes: MailboxService;
  readonly messages: MessageService;
  readonly pushDelivery: PushDelivery;
  readonly pushes: PushService;
  readonly readiness: Readiness;
  readonly refusals: RefusedCallers;
  readonly relayAgent: RelayAgentService;
  readonly remoteWork: RemoteWork;
  readonly repairs: RepairService;
  readonly retention: Retention;
  readonly sweep: Sweep;
  readonly taskQueue: TaskQueueService;
  readonly taskPushDelivery: TaskPushDelivery;
  readonly tasks: TaskService;
  readonly tenants: TenantService;
}

export function createCore(given: CoreParts, settings: CoreSettings): RelayCore {
  const guard = new Guard(given);
  const validity = new CapabilityValidity(given);
  const parts = {
    ...given,
    directory: new Directory(given.store),
    remoteAgents: new RemoteAgents(given, settings),
    guard,
    keyMaker: new KeyMaker(given),
    validity,
    gate: new CapabilityGate({ ...given, guard, validity }, settings),
    capabilityMutex: new KeyedMutex(given.clock),
    throttle: new Throttle(given.clock),
    waitQuota: new WaitQuota(given),
    anchoring: new Anchoring(given),
  };
  const services = {
    mailboxes: new MailboxService(parts, settings),
    messages: new MessageService(parts, settings),
    refusals: new RefusedCallers(parts),
    repairs: new RepairService(parts, settings),
    retention: new Retention(parts, settings),
    tasks: new TaskService(parts, settings),
    tenants: new TenantService(parts, settings),
  };
  const a2aTasks = new A2aTasks(parts);
  const asked = { a2aTasks, a2aPushes: new A2aPushService({ ...parts, a2aTasks }) };
  return {
    ...services,
    guard: parts.guard,
    a2a: new A2aService({ ...parts, ...services, ...asked }, settings),
    a2aCards: new A2aCardService(parts, settings),
    a2aPushes: asked.a2aPushes,
    agents: new AgentService(parts, settings),
    anchoring: parts.anchoring,
    capabilities: new CapabilityService(parts),
    claims: new OwnClaims(parts),
    inbox: new SignedInbox({ ...parts, ...services }),
    journal: new JournalService(parts, settings),
    keys: new KeyService(parts),
    pushDelivery: new PushDelivery(parts, settings),
    pushes: new PushService(parts),
    readiness: new Readiness(parts),
    relayAgent: new RelayAgentService(parts, settings),
    remoteWork: new RemoteWork({ ...parts, ...services }),
    sweep: new Sweep(parts, settings),
    taskPushDelivery: new TaskPushDelivery(parts, settings),
    taskQueue: new TaskQueueService({ ...parts, ...services }),
  };
}
