-- The session as clients receive it, so that lists are not put together from columns. The columns are for finding and
-- sorting; absent in rows that are older than this, and where somebody has changed a column by hand.
ALTER TABLE session ADD COLUMN data text;
CREATE TRIGGER session_changed_by_hand AFTER UPDATE ON session WHEN new.data IS old.data AND new.data IS NOT NULL
BEGIN
    UPDATE session SET data = NULL WHERE id = new.id;
END;
-- The order in which a project's sessions are listed, so that a list need not be sorted.
DROP INDEX session_project_idx;
CREATE INDEX session_project_time_updated_id_idx ON session (project_id, time_updated DESC, id);
