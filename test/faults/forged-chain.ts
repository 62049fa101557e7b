import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type EventRecord, eventHash } from "../../packages/relay/src/core/journal/event.ts";

const DEFAULT_TENANT = "default";

/** Takes the last events of a chain and makes its head look as if they had never been. */
export function cutTail(database: string, count: number, tenant = DEFAULT_TENANT): void {
  using file = new DatabaseSync(database);
  const cut = file.prepare(
    "delete from event where tenant = ?1 and seq > (select max(seq) - ?2 from event where tenant = ?1)",
  );
  assert.equal(Number(cut.run(tenant, count).changes), count);
  resetHead(file, tenant);
}

/** Edits one event and hashes it and all that follow anew: a chain that fits, only another one. */
export function rewrite(database: string, seq: number, actor: string, tenant = DEFAULT_TENANT): void {
  using file = new DatabaseSync(database);
  const rows = file
    .prepare(
      `select tenant, seq, type, at_ms as atMs, actor, agent_id as agentId, message_id as messageId,
         task_id as taskId, thread_id as threadId, data_json as dataJson, previous_hash as previousHash, hash
       from event where tenant = ? and seq >= ? order by seq`,
    )
    .all(tenant, seq) as unknown as readonly EventRecord[];
  const update = file.prepare(
    "update event set actor = ?, previous_hash = ?, hash = ? where tenant = ? and seq = ?",
  );
  assert.ok(rows.length > 0);
  let previousHash = rows[0]?.previousHash ?? "";
  for (const row of rows) {
    const forged = { ...row, previousHash, actor: row.seq === seq ? actor : row.actor };
    previousHash = eventHash(forged);
    update.run(forged.actor, forged.previousHash, previousHash, tenant, row.seq);
  }
  resetHead(file, tenant);
}

/** Takes all events and says that retention did it. */
export function pretendRetention(database: string, tenant = DEFAULT_TENANT): void {
  using file = new DatabaseSync(database);
  const head = { seq: 1_000, hash: "e".repeat(64) };
  file.prepare("delete from event where tenant = ?").run(tenant);
  file.prepare("delete from message where tenant = ?").run(tenant);
  file.prepare("delete from delivery where tenant = ?").run(tenant);
  file.prepare("insert or replace into chain_anchor values (?, ?, ?)").run(tenant, head.seq, head.hash);
  file.prepare("update chain_head set seq = ?, hash = ? where tenant = ?").run(head.seq, head.hash, tenant);
}

function resetHead(file: DatabaseSync, tenant: string): void {
  const reset = file.prepare(
    `update chain_head set (seq, hash) = (
       select seq, hash from event where tenant = ?1 order by seq desc limit 1) where tenant = ?1`,
  );
  assert.equal(Number(reset.run(tenant).changes), 1);
}
