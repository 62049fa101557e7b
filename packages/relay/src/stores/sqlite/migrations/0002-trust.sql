-- Who may do what: keys, tenants, capabilities, and the keys by which agents are told apart. Of the rows that
-- every note writes only `delivery` grows, by a column without an index.

alter table agent add column pubkey_b58 text;
alter table agent add column custodial integer not null default 0;
alter table agent add column others_before_ms integer not null default 0;
-- A removed agent keeps its key on record, but does not keep others from it.
create unique index agent_key on agent (tenant, pubkey_b58)
  where pubkey_b58 is not null and removed_at_ms is null;

-- The private halves that the relay holds.
create table custodial_key (
  tenant text not null,
  pubkey_b58 text not null,
  private_key text not null,
  primary key (tenant, pubkey_b58)
) strict, without rowid;

alter table delivery add column purpose text not null default 'mail';
update delivery set purpose = 'work' where task_id is not null and exists (
  select 1 from task t
  where t.tenant = delivery.tenant and t.id = delivery.task_id and t.message_id = delivery.message_id);
update delivery set purpose = 'result' where task_id is not null and exists (
  select 1 from task t
  where t.tenant = delivery.tenant and t.id = delivery.task_id and t.result_message_id = delivery.message_id);

alter table task add column client_id text;
alter table task add column result_key text;
create unique index task_client_id on task (tenant, client_id, requester) where client_id is not null;
create index task_result_key on task (tenant, result_key)
  where result_key is not null and state in ('submitted', 'working', 'input-required', 'auth-required');

-- The one key that does not start with the tenant: whoever shows an API key has not said yet where they belong.
create table api_key (
  id text primary key,
  tenant text not null,
  agent_id text,
  verbs_json text,
  digest text not null,
  created_at_ms integer not null,
  created_by text not null,
  expires_at_ms integer,
  revoked_at_ms integer,
  replaces text,
  replaced_by text,
  version integer not null
) strict, without rowid;
create index api_key_of_tenant on api_key (tenant, id);
create index api_key_of_agent on api_key (tenant, agent_id, id) where agent_id is not null;

create table tenant (
  id text primary key,
  capabilities integer not null,
  created_at_ms integer not null,
  version integer not null
) strict, without rowid;
insert into tenant (id, capabilities, created_at_ms, version) values ('default', 0, 0, 1);

create table capability (
  tenant text not null,
  id text not null,
  nonce text not null,
  subject text not null,
  subject_key text not null,
  action text not null,
  written_action text not null,
  scope_json text not null,
  granted_by text not null,
  parent_id text,
  issued_at_ms integer not null,
  expires_at_ms integer,
  revoked_at_ms integer,
  used integer not null,
  signature text not null,
  version integer not null,
  primary key (tenant, id)
) strict, without rowid;
create index capability_in_force on capability (tenant, subject_key, action) where revoked_at_ms is null;
create index capability_of_subject on capability (tenant, subject_key, id);
create index capability_granted_by on capability (tenant, granted_by, id);

-- What may be long comes last.
create table cached_result (
  tenant text not null,
  result_key text not null,
  task_id text not null,
  stored_at_ms integer not null,
  expires_at_ms integer not null,
  text text not null,
  parts_json text,
  artifacts_json text not null,
  primary key (tenant, result_key)
) strict;
create index cached_result_expiry on cached_result (expires_at_ms);
create index cached_result_age on cached_result (tenant, stored_at_ms);

-- Events are a third of every commit. One number for tenant and seq lets a row be appended to the end of its table
-- instead of being searched for, and hashes are bytes. `seq` is there for whoever reads the file by hand.
alter table chain_head add column number integer not null default 0;
update chain_head set number = (select count(*) from chain_head other where other.tenant < chain_head.tenant);
create unique index chain_head_number on chain_head (number);
create table packed_event (
  place integer primary key,
  seq integer generated always as (place & 8589934591) virtual,
  type text not null,
  at_ms integer not null,
  actor text not null,
  agent_id text,
  message_id text,
  task_id text,
  thread_id text,
  data_json text not null,
  previous_hash blob not null,
  hash blob not null
) strict;
insert into packed_event
  (place, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json, previous_hash, hash)
select h.number * 8589934592 + e.seq, e.type, e.at_ms, e.actor, e.agent_id, e.message_id, e.task_id, e.thread_id,
  e.data_json, unhex(e.previous_hash), unhex(e.hash)
from event e join chain_head h on h.tenant = e.tenant order by 1;
drop table event;
alter table packed_event rename to event;
create index event_message on event (message_id) where message_id is not null;
create index event_task on event (task_id) where task_id is not null;

-- Most letters begin a thread of their own, which is named after them: '' stands for that name, and is not indexed.
drop index message_thread;
create index message_thread on message (tenant, thread_id) where thread_id <> '';
