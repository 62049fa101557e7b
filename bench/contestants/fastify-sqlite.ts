import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Fastify from "fastify";
import { GroupCommit } from "./group-commit.ts";

// The reference: the least that a durable mailbox over HTTP can do. One row a message, one index, no agents,
// no journal, no receipts, no idempotency. It answers to the same three requests as the relay.
const directory = process.argv[2];
if (directory === undefined) throw new Error("name the directory for the database");

const database = new DatabaseSync(join(directory, "reference.sqlite"));
database.exec(`
  pragma journal_mode = wal;
  pragma synchronous = full;
  pragma cache_size = -65536;
  pragma wal_autocheckpoint = 16000;
  create table message (
    id integer primary key autoincrement,
    agent text not null,
    lease_until_ms integer not null default 0,
    lease_id text,
    json text not null
  ) strict;
  create index message_of_agent on message (agent, lease_until_ms, id);`);

const insert = database.prepare("insert into message (agent, json) values (?, ?)");
const lease = database.prepare(`
  update message set lease_id = ?, lease_until_ms = ?
  where id = (
    select id from message where agent = ? and lease_until_ms <= ? order by lease_until_ms, id limit 1)
  returning id, json`);
const acknowledge = database.prepare("delete from message where id = ? and agent = ? and lease_id = ?");
const commits = new GroupCommit(database);

const text = { type: "string" } as const;
const mailboxParams = { type: "object", properties: { agent: text } } as const;

const sendSchema = {
  body: {
    type: "object",
    required: ["from", "to", "body"],
    properties: { from: text, to: text, type: text, subject: text, body: text },
  },
  response: {
    201: { type: "object", properties: { message_id: text, stage: text, recipient: text } },
  },
} as const;

const leaseSchema = {
  params: mailboxParams,
  body: { type: "object", required: ["lease_ms"], properties: { lease_ms: { type: "integer" } } },
} as const;

const ackSchema = {
  params: mailboxParams,
  body: {
    type: "object",
    required: ["leases"],
    properties: {
      leases: {
        type: "array",
        items: {
          type: "object",
          required: ["message_id", "lease_id"],
          properties: { message_id: text, lease_id: text },
        },
      },
    },
  },
  response: { 200: { type: "object", properties: { acknowledged: { type: "integer" } } } },
} as const;

interface AckBody {
  readonly leases: readonly { readonly message_id: string; readonly lease_id: string }[];
}

const app = Fastify();

app.post<{ Body: { readonly to: string } }>("/messages", { schema: sendSchema }, async (request, reply) => {
  const { to } = request.body;
  const json = JSON.stringify(request.body);
  const { lastInsertRowid } = await commits.submit(() => insert.run(to, json));
  void reply.code(201);
  return { message_id: String(lastInsertRowid), stage: "accepted", recipient: to };
});

app.post<{ Params: { readonly agent: string }; Body: { readonly lease_ms: number } }>(
  "/mailbox/:agent/lease",
  { schema: leaseSchema },
  async (request, reply) => {
    const nowMs = Date.now();
    const leaseId = randomUUID();
    const untilMs = nowMs + request.body.lease_ms;
    const row = await commits.submit(() => lease.get(leaseId, untilMs, request.params.agent, nowMs));
    void reply.type("application/json");
    if (row === undefined) return '{"messages":[]}';
    // The stored text is passed on as it is: nothing is parsed that is only carried.
    const { id, json } = row as { readonly id: number; readonly json: string };
    return `{"messages":[{"message_id":"${id}","lease":{"id":"${leaseId}"},"message":${json}}]}`;
  },
);

app.post<{ Params: { readonly agent: string }; Body: AckBody }>(
  "/mailbox/:agent/ack",
  { schema: ackSchema },
  async (request, _reply) => {
    const { agent } = request.params;
    const changes = await commits.submit(() =>
      request.body.leases.map((ref) => acknowledge.run(ref.message_id, agent, ref.lease_id).changes),
    );
    return { acknowledged: changes.filter((count) => count === 1).length };
  },
);

console.log(`listening ${await app.listen({ host: "127.0.0.1", port: 0 })}`);
process.once("SIGTERM", () => process.exit(0));
