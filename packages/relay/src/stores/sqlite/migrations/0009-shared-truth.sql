-- What all relays on one store must agree on.

-- The private key with which they sign.
create table relay_identity (
  only_row integer primary key check (only_row = 1),
  private_key text not null
) strict;

-- The newest anchor that a relay has written to its anchor directory: a note for readers, not a proof.
create table anchor (
  tenant text primary key,
  seq integer not null,
  hash text not null,
  at_ms integer not null
) strict, without rowid;

-- How far retention has scanned the messages of a tenant.
create table retention_progress (
  tenant text primary key,
  scanned_ref integer not null
) strict, without rowid;

-- Of the unfinished tasks that ask for the same work, one does it and the others wait.
-- Until now the oldest was the one.
alter table task add column waiting integer not null default 0;
drop index task_result_key;
create index task_result_key on task (tenant, result_key, waiting, id)
  where result_key is not null
    and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');
update task set waiting = 1
where result_key is not null
  and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required')
  and exists (
    select 1 from task as older
    where older.tenant = task.tenant and older.result_key = task.result_key and older.id < task.id
      and older.result_key is not null
      and (older.state = 'submitted' or older.state = 'working' or older.state = 'input-required'
        or older.state = 'auth-required'));
