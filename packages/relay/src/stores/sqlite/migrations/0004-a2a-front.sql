-- What those who follow a task were shown, step by step, with what was said: the journal has digests only. A task that
-- is only asked for writes none of it.

alter table task add column first_message_id text;
alter table task add column asked_of text;
alter table task add column plain integer not null default 0;
alter table task add column update_count integer not null default 0;
alter table task add column update_bytes integer not null default 0;
-- Tasks that were handed over before: what their requester wrote first. The letter that begins a thread of its own
-- has no thread in its row.
update task set first_message_id = coalesce(
  (select m.id from message m
   where m.tenant = task.tenant and m.id = 'msg_' || substr(task.thread_id, length('thread_') + 1)
     and m.task_id = task.id and m.sender = task.requester),
  (select m.id from message m
   where m.tenant = task.tenant and m.thread_id = task.thread_id and m.thread_id <> ''
     and m.task_id = task.id and m.sender = task.requester
   order by m.ref limit 1))
where handoffs_json <> '[]';
-- What A2A callers list: their own, of one agent, the newest change first.
create index task_asked_of on task (tenant, requester, updated_at_ms, id, asked_of) where asked_of is not null;

-- A table with row ids, because a step may be as long as an artifact.
create table task_update (
  ref integer primary key,
  tenant text not null,
  task_id text not null,
  n integer not null,
  at_ms integer not null,
  kind text not null,
  step_json text not null
) strict;
create unique index task_update_n on task_update (tenant, task_id, n);

-- Shown only to callers who are known; and whether an agent's own interfaces may be shown.
alter table agent add column extended_card_json text;
alter table agent add column direct integer not null default 0;

-- Where A2A callers want to be told of their tasks, and how far each was told. An update of a task makes its
-- configurations due in the same commit; the time is null where there is nothing to send.
create table task_push_config (
  tenant text not null,
  task_id text not null,
  id text not null,
  owner text not null,
  url text not null,
  -- Of the url: what one receiver has in common.
  origin text not null,
  token text,
  scheme text,
  credentials text,
  dialect text not null,
  state text not null check (state in ('active', 'ended', 'failed')),
  reason text,
  after_n integer not null,
  attempts integer not null,
  given_up integer not null,
  next_at_ms integer,
  created_at_ms integer not null,
  version integer not null,
  primary key (tenant, task_id, id)
) strict, without rowid;
create index task_push_config_due on task_push_config (tenant, owner, next_at_ms, origin)
  where state = 'active' and next_at_ms is not null;

-- Set before a letter goes to an agent elsewhere that must not get it twice: if it is still set when somebody looks
-- again, nobody knows whether the letter arrived.
alter table push add column sent_at_ms integer;

-- Tasks that agents elsewhere work on, and what they answered that is not on record of the task yet. A table with row
-- ids, because an answer may be as long as all artifacts of a task.
create table remote_task (
  ref integer primary key,
  tenant text not null,
  task_id text not null,
  agent_id text not null,
  requester text not null,
  thread_id text not null,
  url text not null,
  origin text not null,
  binding text not null,
  dialect text not null,
  a2a_tenant text,
  remote_task_id text,
  remote_context_id text,
  status_digest text,
  changed_at_ms integer not null,
  next_at_ms integer,
  failures integer not null,
  misses integer not null,
  version integer not null,
  answer_json text
) strict;
create unique index remote_task_id on remote_task (tenant, task_id);
-- With the origin in it, so that those of one that has enough to do are passed over without a look at the rows.
create index remote_task_due on remote_task (tenant, next_at_ms, task_id, origin) where next_at_ms is not null;
create index remote_task_thread on remote_task (tenant, agent_id, requester, thread_id, url, task_id)
  where remote_context_id is not null;
