-- A session has at most one owner, named after a lock file that its process holds.
-- The fence counts the owners a session has had; it is kept when the session is let go.
ALTER TABLE event_sequence ADD COLUMN fence integer DEFAULT 0 NOT NULL;
CREATE INDEX event_sequence_owner_idx ON event_sequence (owner_id) WHERE owner_id IS NOT NULL;

-- The latest value of a part that is still growing: newer than the part's row and not
-- in the log. `data` is as in `part`. Gone with the next event of the part.
CREATE TABLE draft (
    part_id text PRIMARY KEY,
    message_id text NOT NULL,
    session_id text NOT NULL,
    time_updated integer NOT NULL,
    data text NOT NULL
);
CREATE INDEX draft_session_idx ON draft (session_id);
CREATE INDEX draft_message_idx ON draft (message_id);
