import type { Claim, ClaimRequest, ClaimStore } from "../../core/ports/claims.ts";
import { ClashError } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";

const SQL = {
  claim: `
    insert into claim as held (kind, key, owner, fence, until_ms)
    select kind, key, $2, nextval('fence'), $4 from json_to_recordset($1) as unit (kind text, key text)
    order by kind, key
    on conflict (kind, key) do update set owner = excluded.owner, until_ms = excluded.until_ms,
      fence = case when held.owner = excluded.owner then held.fence else excluded.fence end
    where held.owner = excluded.owner or held.until_ms <= $3
    returning kind, key, owner, fence`,
  renew: `
    update claim held set until_ms = $2
    from json_to_recordset($1) as c (kind text, key text, owner text, fence bigint)
    where held.kind = c.kind and held.key = c.key and held.owner = c.owner and held.fence = c.fence
    returning held.kind, held.key, held.owner, held.fence`,
  release: `
    delete from claim held using json_to_recordset($1) as c (kind text, key text, owner text, fence bigint)
    where held.kind = c.kind and held.key = c.key and held.owner = c.owner and held.fence = c.fence`,
  // Until the commit no other process takes them.
  held: `
    select 1 from claim held join json_to_recordset($1) as c (kind text, key text, owner text, fence bigint)
      on held.kind = c.kind and held.key = c.key and held.owner = c.owner and held.fence = c.fence
    for share of held`,
};

export class Claims implements ClaimStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async claim({ units, owner, nowMs, untilMs }: ClaimRequest): Promise<readonly Claim[]> {
    const rows = await this.#database.rows(SQL.claim, [JSON.stringify(units), owner, nowMs, untilMs]);
    return rows.map((row) => claimFromRow(row));
  }

  async renew(claims: readonly Claim[], untilMs: number): Promise<readonly Claim[]> {
    const rows = await this.#database.rows(SQL.renew, [JSON.stringify(claims), untilMs]);
    return rows.map((row) => claimFromRow(row));
  }

  async release(claims: readonly Claim[]): Promise<void> {
    await this.#database.rows(SQL.release, [JSON.stringify(claims)]);
  }

  async assertHeld(transaction: Transaction, claims: readonly Claim[]): Promise<void> {
    if (claims.length === 0) return;
    const held = await transaction.rows(SQL.held, [JSON.stringify(claims)]);
    const wanted = new Set(claims.map(({ kind, key, fence }) => `${kind} ${key} ${fence}`));
    if (held.length !== wanted.size) throw new ClashError("claim");
  }
}

function claimFromRow(row: Row): Claim {
  return {
    kind: row["kind"] as Claim["kind"],
    key: row["key"] as string,
    owner: row["owner"] as string,
    fence: row["fence"] as number,
  };
}
