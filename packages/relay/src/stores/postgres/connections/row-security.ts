import { RelayError } from "@a2a-relay/protocol";
import type { ClientBase } from "pg";

/**
 * The second wall between tenants. Every table has a policy that shows only rows of the tenant in `a2a_relay.tenant`.
 * It does not bind the owner of the tables, who searches for keys, sweeps and seals. All else runs as this role.
 */
const TENANT_ROLE = "a2a_relay_tenant";

/** Tables of one tenant's rows, not their partitions, which have no policy; and the claims, which commits check. */
const TABLES = `
  select format('%I', c.relname) as name from pg_class c
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
    and (c.relname = 'claim' or exists (
      select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped))`;

const ROLE_STATUS = `
  select quote_ident(current_user) as login, rolsuper or rolbypassrls as may_bypass,
    pg_has_role(r.oid, 'set') as may_set
  from (select 1) as one left join pg_roles r on rolname = $1`;

const SCHEMA_USAGE = `
  select quote_ident(current_schema()) as name, has_schema_privilege($1, current_schema(), 'usage') as may_use`;

interface SchemaUsage {
  readonly name: string;
  readonly may_use: boolean;
}

interface RoleStatus {
  readonly login: string;
  /** Null without the role. */
  readonly may_bypass: boolean | null;
  readonly may_set: boolean | null;
}

/** Gives the role what it needs, again after each migration. The caller holds the lock of migrations. */
export async function prepareTenantRole(client: ClientBase): Promise<void> {
  const { rows } = await client.query<RoleStatus>(ROLE_STATUS, [TENANT_ROLE]);
  const { login, may_bypass: mayBypass, may_set: maySet } = rows[0] ?? {};
  if (maySet !== true) {
    const how = `create role ${TENANT_ROLE} nologin; grant ${TENANT_ROLE} to ${login};`;
    throw refusal(`needs the role ${TENANT_ROLE}; an administrator of the database runs: ${how}`);
  }
  if (mayBypass === true) throw refusal(`needs a role that cannot bypass it, but ${TENANT_ROLE} can`);
  const { rows: tables } = await client.query<{ readonly name: string }>(TABLES);
  await client.query(`do $$ begin
    execute format('grant usage on schema %I to ${TENANT_ROLE}', current_schema());
    execute format('grant usage on all sequences in schema %I to ${TENANT_ROLE}', current_schema());
  end $$`);
  const names = tables.map(({ name }) => name).join(", ");
  await client.query(`grant select, insert, update, delete on ${names} to ${TENANT_ROLE}`);
  const { rows: schemas } = await client.query<SchemaUsage>(SCHEMA_USAGE, [TENANT_ROLE]);
  if (schemas[0]?.may_use === true) return;
  // Only the owner of a schema can give it to others.
  const how = `grant usage on schema ${schemas[0]?.name} to ${TENANT_ROLE};`;
  throw refusal(`needs the schema to be open to its role; the owner of the schema runs: ${how}`);
}

function refusal(why: string): RelayError {
  return new RelayError("unavailable", `row-level security (--database-rls) ${why}`);
}

/** Until the end of the transaction. */
export function beginAs(tenant: string): string {
  const literal = `'${tenant.replaceAll("'", "''")}'`;
  return `begin; set local role ${TENANT_ROLE}; set local a2a_relay.tenant = ${literal}`;
}
