-- Parts are found by their messages; an index over their sessions cost every write a page.
DROP INDEX part_session_idx;
-- The order in which sessions are listed, so that a list need not be sorted.
DROP INDEX session_time_updated_idx;
CREATE INDEX session_time_updated_id_idx ON session (time_updated DESC, id);
-- The fence of the owner that was asked, by another process, to stop what it does in the session.
ALTER TABLE event_sequence ADD COLUMN stopped integer;
