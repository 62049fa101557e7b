import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { EventRecord } from "../../packages/relay/src/core/ports/journal.ts";
import { eventHash } from "../../packages/relay/src/core/rules/event.ts";

const DEFAULT_TENANT = "default";

/** The events of the tenant that is the first parameter. */
const IN_CHAIN = "place >> 33 = (select number from chain_head where tenant = ?1)";

/** Removes the last events of a chain and sets its head to the event before them. */
export function cutTail(database: string, count: number, tenant = DEFAULT_TENANT): void {
  using file = new DatabaseSync(database);
  const cut = file.prepare(
    `delete from event where place in (
       select place from event where ${IN_CHAIN} order by place desc limit ?2)`,
  );
  assert.equal(Number(cut.run(tenant, count).changes), count);
  resetHead(file, tenant);
}

/** Edits one event and hashes it and all that follow anew: a chain that fits, only another one. */
export function rewrite(database: string, seq: number, actor: string, tenant = DEFAULT_TENANT): void {
  using file = new DatabaseSync(database);
  const rows = file
    .prepare(
      `select ?1 as tenant, seq, type, at_ms as atMs, actor, agent_id as agentId,
         coalesce(message_id, accepted_id) as messageId,
         task_id as taskId, thread_id as threadId, data_json as dataJson,
         lower(hex(previous_hash)) as previousHash, lower(hex(hash)) as hash
       from event where ${IN_CHAIN} and seq >= ?2 order by place`,
    )
    .all(tenant, seq) as unknown as readonly EventRecord[];
  const update = file.prepare(
    `update event set actor = ?3, previous_hash = unhex(?4), hash = unhex(?5) where ${IN_CHAIN} and seq = ?2`,
  );
  assert.ok(rows.length > 0);
  let previousHash = rows[0]?.previousHash ?? "";
  for (const row of rows) {
    const forged = { ...row, previousHash, actor: row.seq === seq ? actor : row.actor };
    previousHash = eventHash(forged);
    update.run(tenant, row.seq, forged.actor, forged.previousHash, previousHash);
  }
  resetHead(file, tenant);
}

/** Takes all events and says that retention did it. */
export function pretendRetention(database: string, tenant = DEFAULT_TENANT): void {
  using file = new DatabaseSync(database);
  const head = { seq: 1_000, hash: "e".repeat(64) };
  file.prepare(`delete from event where ${IN_CHAIN}`).run(tenant);
  file.prepare("delete from message where tenant = ?").run(tenant);
  file.prepare("delete from delivery where tenant = ?").run(tenant);
  file.prepare("insert or replace into chain_anchor values (?, ?, ?)").run(tenant, head.seq, head.hash);
  file.prepare("update chain_head set seq = ?, hash = ? where tenant = ?").run(head.seq, head.hash, tenant);
  file.prepare("update anchor set seq = ?, hash = ? where tenant = ?").run(head.seq, head.hash, tenant);
}

function resetHead(file: DatabaseSync, tenant: string): void {
  const reset = file.prepare(
    `update chain_head set (seq, hash) = (
       select seq, lower(hex(hash)) from event where ${IN_CHAIN} order by place desc limit 1) where tenant = ?1`,
  );
  assert.equal(Number(reset.run(tenant).changes), 1);
  // What the store notes of the anchors is set to fit too.
  file
    .prepare(
      "update anchor set (seq, hash) = (select seq, hash from chain_head where tenant = ?1) where tenant = ?1",
    )
    .run(tenant);
}
