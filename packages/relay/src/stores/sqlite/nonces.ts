import type { DatabaseSync } from "node:sqlite";
import type { UsedNonce } from "../../core/ports/access.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";

const INSERT = `
  insert into used_nonce (tenant, key_id, nonce, expires_at_ms) values (?, ?, ?, ?) on conflict do nothing`;
const FORGET = `
  delete from used_nonce where (tenant, key_id, nonce) in (
    select tenant, key_id, nonce from used_nonce indexed by used_nonce_expiry
    where expires_at_ms < ? limit ?)`;

/** What signed messages were told apart by, so that none counts twice. */
export class Nonces {
  readonly #insert: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync) {
    this.#insert = prepare(database, INSERT);
    this.#forget = prepare(database, FORGET);
  }

  /** Inside a commit. */
  use(tenant: string, { keyId, nonce, expiresAtMs }: UsedNonce): void {
    const { changes } = this.#insert.run(tenant, keyId, nonce, expiresAtMs);
    if (changes === 0) throw new ClashError("nonce");
  }

  /** Inside a commit. At most `limit`; answers how many. */
  forget(expiredBeforeMs: number, limit: number): number {
    return Number(this.#forget.run(expiredBeforeMs, limit).changes);
  }
}
