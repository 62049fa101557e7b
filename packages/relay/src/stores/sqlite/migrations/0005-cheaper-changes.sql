-- What a letter or a task costs whenever it changes. A condition with `in` has SQLite build a table of the list each
-- time a row is written, and for each index that has one: the same, said with `or`, takes half the time.

drop index delivery_expiry;
create index delivery_expiry on delivery (tenant, expires_at_ms) where (state = 'held' or state = 'available');
drop index delivery_open_of_task;
create index delivery_open_of_task on delivery (tenant, task_id)
  where task_id is not null and (state = 'held' or state = 'available' or state = 'leased');
drop index delivery_returned;
create index delivery_returned on delivery (tenant, state)
  where (state = 'expired' or state = 'withdrawn' or state = 'dead');

drop index task_unfinished;
create index task_unfinished on task (tenant, id)
  where (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');
drop index task_deadline;
create index task_deadline on task (deadline_ms)
  where deadline_ms is not null
    and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');
drop index task_result_key;
create index task_result_key on task (tenant, result_key)
  where result_key is not null
    and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required');

-- The last position given out when this end of a chain was written: a page less in every commit. The last of all is
-- the largest, here or in `store_head`.
alter table chain_head add column position integer not null default 0;
