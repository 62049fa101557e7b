-- Every key starts with the tenant. Every index here is read by a verb of the store port; each one costs
-- several microseconds on every send, so most are partial and hold only the rows that verb looks for.

-- The last ref and position given out. It only grows, also when everything is deleted.
create table store_head (
  only_row integer primary key check (only_row = 1),
  position integer not null
) strict;
insert into store_head (only_row, position) values (1, 0);

-- What `probe` writes.
create table probe (
  only_row integer primary key check (only_row = 1),
  at_ms integer not null
) strict;

create table agent (
  tenant text not null,
  id text not null,
  display_name text not null,
  aliases_json text not null,
  card_json text not null,
  skills_json text not null,
  representative_queries_json text not null,
  callback_url text,
  ttl_ms integer,
  registered_at_ms integer not null,
  removed_at_ms integer,
  version integer not null,
  primary key (tenant, id)
) strict;
create index agent_present on agent (tenant, id, removed_at_ms) where removed_at_ms is null;

-- Every name under which an agent that is not removed can be found; its strongest kind only.
create table agent_name (
  tenant text not null,
  name text not null,
  agent_id text not null,
  kind text not null check (kind in ('id', 'alias', 'display_name')),
  primary key (tenant, name, agent_id)
) strict, without rowid;
create index agent_name_of_agent on agent_name (tenant, agent_id);

create table presence (
  tenant text not null,
  agent_id text not null,
  last_seen_at_ms integer not null,
  primary key (tenant, agent_id)
) strict, without rowid;

-- `json` comes last, so that reading the other columns never touches the overflow pages of a long letter.
-- `send_keys_json` finds the send keys again when the message is retired, without an index on them.
create table message (
  ref integer primary key,
  tenant text not null,
  id text not null,
  sender text not null,
  recipient text not null,
  kind text not null,
  thread_id text not null,
  task_id text,
  accepted_at_ms integer not null,
  send_keys_json text,
  json text not null
) strict;
create unique index message_id on message (tenant, id);
create index message_thread on message (tenant, thread_id);

-- Keys of the SDK begin with the time, so that with the key in front new rows lie side by side.
create table send_key (
  tenant text not null,
  key text not null,
  sender text not null,
  recipient text not null,
  digest text not null,
  message_id text not null,
  thread_id text not null,
  task_id text,
  gone_at_ms integer,
  primary key (tenant, key, sender, recipient)
) strict, without rowid;
create index send_key_gone on send_key (gone_at_ms) where gone_at_ms is not null;

-- `ref` is the ref of its message: a narrow row that changes often beside a long one that never does. Which
-- mail is available in which mailbox is kept in memory, and found again through delivery_expiry.
create table delivery (
  ref integer primary key,
  tenant text not null,
  message_id text not null,
  agent_id text not null,
  sender text not null,
  task_id text,
  state text not null,
  position integer not null,
  delivered_at_ms integer,
  attempt integer not null,
  lease_id text,
  worker text,
  leased_at_ms integer,
  lease_expires_at_ms integer,
  reserved_for text,
  expires_at_ms integer not null,
  settled_at_ms integer,
  reason text,
  duplicate_safety text not null,
  idempotency_key text,
  quiet integer not null,
  thread_id text not null,
  version integer not null
) strict;
create index delivery_held on delivery (tenant, agent_id) where state = 'held';
create index delivery_leased on delivery (tenant, leased_at_ms) where state = 'leased';
create index delivery_lease_end on delivery (lease_expires_at_ms)
  where state = 'leased' and duplicate_safety = 'idempotent' and lease_expires_at_ms is not null;
create index delivery_expiry on delivery (tenant, expires_at_ms) where state in ('held', 'available');
create index delivery_open_of_task on delivery (tenant, task_id)
  where task_id is not null and state in ('held', 'available', 'leased');
create index delivery_returned on delivery (tenant, state) where state in ('expired', 'withdrawn', 'dead');

create table task (
  tenant text not null,
  id text not null,
  requester text not null,
  assignee text not null,
  state text not null,
  thread_id text not null,
  message_id text not null,
  subject text not null,
  parent_id text,
  deadline_ms integer,
  status_text text,
  result_status text,
  result_message_id text,
  result_digest text,
  handoffs_json text not null,
  created_at_ms integer not null,
  updated_at_ms integer not null,
  version integer not null,
  primary key (tenant, id)
) strict, without rowid;
create index task_thread on task (tenant, thread_id, id);
create index task_parent on task (tenant, parent_id, id) where parent_id is not null;
create index task_unfinished on task (tenant, id)
  where state in ('submitted', 'working', 'input-required', 'auth-required');
create index task_deadline on task (deadline_ms)
  where deadline_ms is not null and state in ('submitted', 'working', 'input-required', 'auth-required');

create table artifact (
  tenant text not null,
  task_id text not null,
  artifact_id text not null,
  ordinal integer not null,
  json text not null,
  primary key (tenant, task_id, artifact_id)
) strict, without rowid;
-- Counts artifacts without reading what is in them.
create index artifact_task on artifact (tenant, task_id);

create table event (
  tenant text not null,
  seq integer not null,
  type text not null,
  at_ms integer not null,
  actor text not null,
  agent_id text,
  message_id text,
  task_id text,
  thread_id text,
  data_json text not null,
  previous_hash text not null,
  hash text not null,
  primary key (tenant, seq)
) strict, without rowid;
create index event_message on event (tenant, message_id, seq) where message_id is not null;

-- The end of each tenant's chain, and the last event that retention took from its beginning.
create table chain_head (
  tenant text primary key,
  seq integer not null,
  hash text not null
) strict, without rowid;
create table chain_anchor (
  tenant text primary key,
  seq integer not null,
  hash text not null
) strict, without rowid;
