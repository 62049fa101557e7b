-- Every letter brings the event that it was accepted. While the letter is kept, it says itself where that event is,
-- and the event names it in `accepted_id`: no send pays for an entry in the index of `message_id`, which was a page of
-- every commit. When the letter leaves, its id moves to `message_id`. Events of before stay where they were.
alter table message add column accepted_place integer;
alter table event add column accepted_id text check (accepted_id is null or message_id is null);
