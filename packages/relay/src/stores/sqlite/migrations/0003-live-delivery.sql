-- Where agents are called, what became of each call, and what signed messages were told apart by. A send writes
-- none of it: the relay takes mail up for pushing by itself, behind the cursor of each endpoint.

alter table api_key add column signing_secret text;
-- Those that have one and end: it is forgotten when they do.
create index api_key_secret_expiry on api_key (expires_at_ms) where signing_secret <> '';

create table push_endpoint (
  tenant text not null,
  agent_id text not null,
  mode text not null,
  url text not null,
  notice integer not null,
  acknowledges integer not null,
  secret text not null,
  old_secret text,
  old_secret_until_ms integer,
  state text not null check (state in ('active', 'disabled')),
  reason text,
  failures integer not null,
  open_until_ms integer,
  after_position integer not null,
  version integer not null,
  primary key (tenant, agent_id)
) strict, without rowid;
create index push_endpoint_active on push_endpoint (tenant, agent_id) where state = 'active';

create table push (
  tenant text not null,
  message_id text not null,
  agent_id text not null,
  state text not null check (state in ('pending', 'delivered', 'failed', 'dropped')),
  reason text,
  attempts integer not null,
  attempts_before integer not null,
  created_at_ms integer not null,
  position integer not null,
  next_at_ms integer,
  version integer not null,
  primary key (tenant, message_id)
) strict, without rowid;
create index push_due on push (tenant, agent_id, next_at_ms, position) where state = 'pending';
-- With the state in front of the time: the few that failed are found without a walk through all that arrived.
create index push_of_agent on push (tenant, agent_id, state, created_at_ms);

-- What may be long comes last.
create table push_attempt (
  tenant text not null,
  message_id text not null,
  attempt integer not null,
  at_ms integer not null,
  duration_ms integer not null,
  status integer,
  error text,
  answer text,
  primary key (tenant, message_id, attempt)
) strict;

create table used_nonce (
  tenant text not null,
  key_id text not null,
  nonce text not null,
  expires_at_ms integer not null,
  primary key (tenant, key_id, nonce)
) strict, without rowid;
create index used_nonce_expiry on used_nonce (expires_at_ms);
