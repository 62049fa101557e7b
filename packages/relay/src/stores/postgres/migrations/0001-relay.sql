-- Text is compared by bytes, as the cursors of lists need it.
--
-- Messages, settled deliveries and events are partitioned by the day of the database's clock. Their number is the day
-- and a sequence, so it orders them by age and names their partition. partitions.ts makes and drops partitions.
create sequence message_ref;
create sequence event_position;
create sequence delivery_position;
create sequence fence;

create function partition_day() returns bigint language sql volatile
  return floor(extract(epoch from clock_timestamp()) / 86400)::bigint;
-- 2^38 numbers a day; JavaScript counts exactly up to 2^53.
create function first_of_day(day bigint) returns bigint language sql immutable return day << 38;
create function next_of_day(counter regclass) returns bigint language sql volatile
  return first_of_day(partition_day()) + nextval(counter) % (1::bigint << 38);

create table message (
  ref bigint not null,
  tenant text collate "C" not null,
  id text collate "C" not null,
  sender text collate "C" not null,
  recipient text collate "C" not null,
  kind text not null,
  thread_id text collate "C" not null,
  task_id text collate "C",
  accepted_at_ms bigint not null,
  json text not null,
  primary key (tenant, ref)
) partition by range (ref);

-- A message exists while it has a row here. Retention deletes this row; the message itself goes with its partition.
create table message_key (
  tenant text collate "C" not null,
  id text collate "C" not null,
  thread_id text collate "C" not null,
  ref bigint not null,
  primary key (tenant, id)
);
create index message_key_thread on message_key (tenant, thread_id, ref);
create index message_key_ref on message_key (ref);

-- One row a mailbox: commits lock the rows of their mailboxes in the order of their keys before they take positions, so
-- positions of one mailbox are in commit order.
create table mailbox (
  tenant text collate "C" not null,
  agent_id text collate "C" not null,
  open_count bigint not null,
  primary key (tenant, agent_id)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);

-- Open deliveries: held, available and leased.
create table delivery (
  tenant text collate "C" not null,
  message_id text collate "C" not null,
  ref bigint not null,
  agent_id text collate "C" not null,
  sender text collate "C" not null,
  task_id text collate "C",
  state text not null,
  position bigint not null,
  delivered_at_ms bigint,
  attempt bigint not null,
  lease_id text,
  worker text,
  leased_at_ms bigint,
  lease_expires_at_ms bigint,
  reserved_for text,
  expires_at_ms bigint not null,
  settled_at_ms bigint,
  reason text,
  duplicate_safety text not null,
  idempotency_key text,
  quiet bigint not null,
  thread_id text collate "C" not null,
  purpose text not null,
  version bigint not null,
  primary key (tenant, message_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
-- The columns after the position: the index alone tells which entries to skip.
create index delivery_available on delivery (tenant, agent_id, position, expires_at_ms, purpose)
  where state = 'available';
create index delivery_line on delivery (tenant, purpose, position, expires_at_ms)
  where state = 'available' and purpose <> 'mail';
create index delivery_held on delivery (tenant, agent_id, ref) where state = 'held';
create index delivery_leased on delivery (tenant, leased_at_ms, ref) where state = 'leased';
create index delivery_lease_end on delivery (lease_expires_at_ms)
  where state = 'leased' and duplicate_safety = 'idempotent' and lease_expires_at_ms is not null;
-- Every position is 0 or more; this index is only for statements that say so, not for those of one mailbox.
create index delivery_expiry on delivery (tenant, expires_at_ms, ref)
  where (state = 'held' or state = 'available') and position >= 0;
create index delivery_open_of_task on delivery (tenant, task_id) where task_id is not null;

create table settled_delivery (like delivery, primary key (tenant, ref)) partition by range (ref);
create index settled_delivery_returned on settled_delivery (tenant, state, ref) where state <> 'acknowledged';

create view any_delivery with (security_invoker = true) as
  select * from delivery union all select * from settled_delivery;

create table task_update (
  tenant text collate "C" not null,
  task_id text collate "C" not null,
  n bigint not null,
  at_ms bigint not null,
  kind text not null,
  step_json text not null,
  primary key (tenant, task_id, n)
);

create table remote_task (
  tenant text collate "C" not null,
  task_id text collate "C" not null,
  agent_id text collate "C" not null,
  requester text collate "C" not null,
  thread_id text collate "C" not null,
  url text collate "C" not null,
  origin text collate "C" not null,
  binding text not null,
  dialect text not null,
  a2a_tenant text,
  remote_task_id text,
  remote_context_id text,
  status_digest text,
  changed_at_ms bigint not null,
  next_at_ms bigint,
  failures bigint not null,
  misses bigint not null,
  version bigint not null,
  answer_json text,
  primary key (tenant, task_id)
);

-- `position` is taken after the locks on mailboxes, so events of one mailbox are in its order. The sealer appends the
-- events of finished transactions to the chain. An event exists until retention deletes its seal; then it goes with
-- its partition.
create table event (
  position bigint not null default next_of_day('event_position') primary key,
  xid xid8 not null default pg_current_xact_id(),
  tenant text collate "C" not null,
  type text not null,
  at_ms bigint not null,
  actor text not null,
  agent_id text,
  message_id text collate "C",
  task_id text collate "C",
  thread_id text,
  data_json text not null
) partition by range (position);
create index event_xid on event (xid, position);
create index event_message on event (tenant, message_id) where message_id is not null;
create index event_task on event (tenant, task_id) where task_id is not null;
create table event_seal (
  tenant text collate "C" not null,
  seq bigint not null,
  position bigint not null unique,
  previous_hash text not null,
  hash text not null,
  primary key (tenant, seq)
);
-- All events that `sealed` sees are sealed, and all below the position `floor`. While `target` is set, those that it
-- sees are being sealed, and are up to `position`.
create table seal_horizon (
  only_row bigint primary key check (only_row = 1),
  sealed pg_snapshot not null,
  target pg_snapshot,
  position bigint not null,
  floor bigint not null
);
insert into seal_horizon values (1, '1:1:', null, 0, 0);
create table chain_head (tenant text collate "C" primary key, seq bigint not null, hash text not null);
create table chain_start (tenant text collate "C" primary key, seq bigint not null, hash text not null);
-- How far retention has scanned the messages of a tenant.
create table retention_progress (tenant text collate "C" primary key, scanned_ref bigint not null);

create table claim (
  kind text not null,
  key text collate "C" not null,
  owner text not null,
  fence bigint not null,
  until_ms bigint not null,
  primary key (kind, key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table probe (only_row bigint primary key check (only_row = 1), at_ms bigint not null);

create table agent (
  tenant text collate "C" not null,
  id text collate "C" not null,
  display_name text collate "C" not null,
  aliases_json text not null,
  card_json text not null,
  skills_json text not null,
  representative_queries_json text not null,
  callback_url text collate "C",
  ttl_ms bigint,
  registered_at_ms bigint not null,
  removed_at_ms bigint,
  version bigint not null,
  pubkey_b58 text collate "C",
  custodial bigint not null default 0,
  others_before_ms bigint not null default 0,
  extended_card_json text,
  direct bigint not null default 0,
  primary key (tenant, id)
);
create index agent_present on agent (tenant, id, removed_at_ms) where removed_at_ms is null;

create table agent_name (
  tenant text collate "C" not null,
  name text collate "C" not null,
  agent_id text collate "C" not null,
  kind text not null check (kind in ('id', 'alias', 'display_name')),
  primary key (tenant, name, agent_id)
);
create index agent_name_of_agent on agent_name (tenant, agent_id);

create table presence (
  tenant text collate "C" not null,
  agent_id text collate "C" not null,
  last_seen_at_ms bigint not null,
  primary key (tenant, agent_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000);

create table send_key (
  tenant text collate "C" not null,
  key text collate "C" not null,
  sender text collate "C" not null,
  recipient text collate "C" not null,
  digest text not null,
  message_id text collate "C" not null,
  thread_id text collate "C" not null,
  task_id text collate "C",
  gone_at_ms bigint,
  primary key (tenant, key, sender, recipient)
);
create index send_key_message on send_key (tenant, message_id);
create index send_key_gone on send_key (gone_at_ms) where gone_at_ms is not null;

create table task (
  tenant text collate "C" not null,
  id text collate "C" not null,
  requester text collate "C" not null,
  assignee text collate "C" not null,
  state text not null,
  thread_id text collate "C" not null,
  message_id text collate "C" not null,
  subject text not null,
  parent_id text collate "C",
  deadline_ms bigint,
  status_text text,
  result_status text collate "C",
  result_message_id text collate "C",
  result_digest text,
  handoffs_json text not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  version bigint not null,
  client_id text collate "C",
  result_key text collate "C",
  first_message_id text collate "C",
  asked_of text collate "C",
  plain bigint not null default 0,
  update_count bigint not null default 0,
  update_bytes bigint not null default 0,
  waiting bigint not null default 0,
  primary key (tenant, id)
);
create index task_parent on task (tenant, parent_id, id) where parent_id is not null;
create index task_thread on task (tenant, thread_id, id);

create table artifact (
  tenant text collate "C" not null,
  task_id text collate "C" not null,
  artifact_id text collate "C" not null,
  ordinal bigint not null,
  json text not null,
  primary key (tenant, task_id, artifact_id)
);
create unique index agent_key on agent (tenant, pubkey_b58)
  where pubkey_b58 is not null and removed_at_ms is null;

create table custodial_key (
  tenant text collate "C" not null,
  pubkey_b58 text collate "C" not null,
  private_key text not null,
  primary key (tenant, pubkey_b58)
);
create unique index task_client_id on task (tenant, client_id, requester) where client_id is not null;

create table api_key (
  id text collate "C" primary key,
  tenant text collate "C" not null,
  agent_id text collate "C",
  verbs_json text,
  digest text not null,
  created_at_ms bigint not null,
  created_by text collate "C" not null,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  replaces text collate "C",
  replaced_by text collate "C",
  version bigint not null,
  signing_secret text
);
create index api_key_of_tenant on api_key (tenant, id);
create index api_key_of_agent on api_key (tenant, agent_id, id) where agent_id is not null;

create table tenant (
  id text collate "C" primary key,
  capabilities bigint not null,
  created_at_ms bigint not null,
  version bigint not null
);

create table capability (
  tenant text collate "C" not null,
  id text collate "C" not null,
  nonce text collate "C" not null,
  subject text not null,
  subject_key text collate "C" not null,
  action text collate "C" not null,
  written_action text collate "C" not null,
  scope_json text not null,
  granted_by text collate "C" not null,
  parent_id text collate "C",
  issued_at_ms bigint not null,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  used bigint not null,
  signature text not null,
  version bigint not null,
  primary key (tenant, id)
);
create index capability_in_force on capability (tenant, subject_key, action) where revoked_at_ms is null;
create index capability_of_subject on capability (tenant, subject_key, id);
create index capability_granted_by on capability (tenant, granted_by, id);

create table cached_result (
  tenant text collate "C" not null,
  result_key text collate "C" not null,
  task_id text collate "C" not null,
  stored_at_ms bigint not null,
  expires_at_ms bigint not null,
  text text not null,
  parts_json text,
  artifacts_json text not null,
  primary key (tenant, result_key)
);
create index cached_result_expiry on cached_result (expires_at_ms);
create index cached_result_age on cached_result (tenant, stored_at_ms);
create index api_key_secret_expiry on api_key (expires_at_ms) where signing_secret <> '';

create table push_endpoint (
  tenant text collate "C" not null,
  agent_id text collate "C" not null,
  mode text not null,
  url text collate "C" not null,
  notice bigint not null,
  acknowledges bigint not null,
  secret text not null,
  old_secret text,
  old_secret_until_ms bigint,
  state text not null check (state in ('active', 'disabled')),
  reason text,
  failures bigint not null,
  open_until_ms bigint,
  after_position bigint not null,
  version bigint not null,
  primary key (tenant, agent_id)
);
create index push_endpoint_active on push_endpoint (tenant, agent_id) where state = 'active';

create table push (
  tenant text collate "C" not null,
  message_id text collate "C" not null,
  agent_id text collate "C" not null,
  state text not null check (state in ('pending', 'delivered', 'failed', 'dropped')),
  reason text,
  attempts bigint not null,
  attempts_before bigint not null,
  created_at_ms bigint not null,
  position bigint not null,
  next_at_ms bigint,
  version bigint not null,
  sent_at_ms bigint,
  primary key (tenant, message_id)
);
create index push_due on push (tenant, agent_id, next_at_ms, position) where state = 'pending';
create index push_of_agent on push (tenant, agent_id, state, created_at_ms);

create table push_attempt (
  tenant text collate "C" not null,
  message_id text collate "C" not null,
  attempt bigint not null,
  at_ms bigint not null,
  duration_ms bigint not null,
  status bigint,
  error text,
  answer text,
  primary key (tenant, message_id, attempt)
);

create table used_nonce (
  tenant text collate "C" not null,
  key_id text collate "C" not null,
  nonce text collate "C" not null,
  expires_at_ms bigint not null,
  primary key (tenant, key_id, nonce)
);
create index used_nonce_expiry on used_nonce (expires_at_ms);
create index task_asked_of on task (tenant, requester, updated_at_ms, id, asked_of) where asked_of is not null;

create table task_push_config (
  tenant text collate "C" not null,
  task_id text collate "C" not null,
  id text collate "C" not null,
  owner text collate "C" not null,
  url text collate "C" not null,
  -- Of the url: what one receiver has in common.
  origin text collate "C" not null,
  token text,
  scheme text,
  credentials text,
  dialect text collate "C" not null,
  state text not null check (state in ('active', 'ended', 'failed')),
  reason text,
  after_n bigint not null,
  attempts bigint not null,
  given_up bigint not null,
  next_at_ms bigint,
  created_at_ms bigint not null,
  version bigint not null,
  sent_at_ms bigint,
  primary key (tenant, task_id, id)
);
create index task_push_config_due on task_push_config (tenant, owner, next_at_ms, origin)
  where state = 'active' and next_at_ms is not null;
create index remote_task_due on remote_task (tenant, next_at_ms, task_id, origin) where next_at_ms is not null;
create index remote_task_thread on remote_task (tenant, agent_id, requester, thread_id, url, task_id)
  where remote_context_id is not null;
create index task_unfinished on task (tenant, id)
  where (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');
create index task_deadline on task (deadline_ms)
  where deadline_ms is not null
    and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');

create table relay_identity (
  only_row bigint primary key check (only_row = 1),
  private_key text not null
);

create table anchor (
  tenant text collate "C" primary key,
  seq bigint not null,
  hash text collate "C" not null,
  at_ms bigint not null
);
create index task_result_key on task (tenant, result_key, waiting, id)
  where result_key is not null
    and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');
insert into tenant (id, capabilities, created_at_ms, version) values ('default', 0, 0, 1);

-- A second wall between tenants, for relays that run as a role that is not the owner: row-security.ts.
do $$
declare name text;
begin
  for name in
    select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and a.attname = 'tenant'
  loop
    execute format('alter table %I enable row level security', name);
    execute format('create policy own_tenant on %I using (tenant = current_setting(''a2a_relay.tenant'', true))', name);
  end loop;
end $$;
