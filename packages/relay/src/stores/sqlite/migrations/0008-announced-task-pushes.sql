-- Set before each request: an attempt whose process ended before its outcome was recorded is seen.
alter table task_push_config add column sent_at_ms integer;
