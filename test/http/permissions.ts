import { a2aEndpoints } from "@a2a-relay/protocol";

export const CALLERS = [
  "root",
  "operator",
  "lulu",
  "kames",
  "acme's operator",
  "acme's lulu",
  "anonymous",
  "unknown",
] as const;
export type Caller = (typeof CALLERS)[number];

/** Who may call an operation on what is lulu's. Its verbs and its request are those of the operation table. */
export interface Row {
  readonly to: readonly Caller[];
  /** Callers that get "not found". */
  readonly hidden?: readonly Caller[];
  /** The statuses for callers that may call; 200 or 201 by default. */
  readonly answers?: readonly number[];
  /** What those of another tenant are answered, to whom none of it exists. */
  readonly otherTenant?: number;
  /** It makes a key, and no key may make one that may do more than itself. */
  readonly makesKey?: true;
}

const OPERATORS: readonly Caller[] = ["root", "operator", "acme's operator"];
/** Callers that act for lulu; in another tenant that is another lulu. */
const LULUS: readonly Caller[] = [...OPERATORS, "lulu", "acme's lulu"];
const AGENTS: readonly Caller[] = [...LULUS, "kames"];

const operators: Row = { to: OPERATORS };
const ownRecord: Row = { to: OPERATORS, otherTenant: 404 };
const lulus: Row = { to: LULUS };
const agents: Row = { to: AGENTS };
/** A message or a task of lulu and another agent. */
const parties: Row = { to: LULUS, hidden: ["kames"], otherTenant: 404 };
/** The other agent that the request names does not exist in another tenant. */
const withPeer: Row = { to: LULUS, otherTenant: 404 };
// The default tenant is the relay's public face; a key that is shown is checked all the same.
const card: Row = { to: [...AGENTS, "anonymous"] };
/** The endpoint is that of kames, whom no other tenant knows. */
const endpoint: Row = { to: [...OPERATORS, "kames", "acme's lulu"], otherTenant: 404 };

/** Every operation that is not open to all callers. */
export const ROWS: Readonly<Record<string, Row>> = {
  "agents.register": lulus,
  "agents.registerAtApi": lulus,
  "agents.list": agents,
  "agents.get": agents,
  "agents.card": card,
  "agents.remove": lulus,
  "agents.heartbeat": lulus,
  "push.get": endpoint,
  "push.rotate": endpoint,
  "push.replay": endpoint,

  "messages.send": withPeer,
  "messages.sendBatch": withPeer,
  "messages.get": parties,
  "mailboxes.read": lulus,
  "mailboxes.stream": lulus,
  // A caller that may have the socket is told to upgrade.
  "mailboxes.socket": { to: LULUS, answers: [400] },
  "mailboxes.acknowledge": lulus,
  "mailboxes.lease": lulus,
  "mailboxes.renew": lulus,
  "mailboxes.release": lulus,
  "mailboxes.fail": withPeer,

  "tasks.list": lulus,
  "tasks.get": parties,
  "tasks.tree": parties,
  "tasks.events": parties,
  "tasks.reportStatus": parties,
  "tasks.addArtifact": parties,
  "tasks.complete": parties,
  "tasks.fail": parties,
  "tasks.reject": parties,
  // The other agent made the request.
  "tasks.cancel": { to: [...OPERATORS, "acme's lulu"], hidden: ["kames"], otherTenant: 404 },

  "threads.list": operators,
  "threads.get": ownRecord,
  "journal.events": operators,
  "journal.verify": operators,
  "repairs.queue": lulus,
  "repairs.repair": ownRecord,
  "repairs.retryStale": operators,

  "keys.create": { to: OPERATORS, makesKey: true },
  "keys.list": operators,
  "keys.rotate": { ...ownRecord, makesKey: true },
  "keys.revoke": ownRecord,
  "keys.remove": ownRecord,
  "tenants.list": operators,
  "tenants.change": { to: ["root", "acme's operator"] },
  "capabilities.grant": ownRecord,
  "capabilities.revoke": parties,
  "capabilities.list": agents,
  "capabilities.usage": agents,

  "queueTasks.send": withPeer,
  "queueTasks.take": lulus,
  "queueTasks.next": lulus,
  "queueTasks.recent": lulus,
  "queueResults.post": parties,
  "queueResults.take": lulus,
  "queueResults.next": lulus,
  "queueResults.acknowledge": withPeer,
  "queueResults.recent": lulus,
  "queue.get": lulus,
  "queue.repair": ownRecord,
  "queue.retryStale": operators,
  "queue.compact": operators,

  "service.metrics": operators,

  "a2a.relay": agents,
  "a2a.agent": agents,
  "a2a.restGet": agents,
  // Lulu would ask itself.
  "a2a.restPost": { to: AGENTS, answers: [200, 400] },
  "a2a.restDelete": parties,
  ...Object.fromEntries(Object.values(a2aEndpoints.agentCards).map(({ name }) => [name, card])),
};
