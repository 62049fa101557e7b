-- Most tasks are asked for by a letter that begins a thread of its own: as with letters, '' stands for that thread, and
-- the task is found by its letter. Those of before keep the name, and their entry.
drop index task_thread;
create index task_thread on task (tenant, thread_id, id) where thread_id <> '';
