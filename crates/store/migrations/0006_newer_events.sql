-- Where in the session's log a message was first stored, so that its admission is found without reading the log; absent
-- in rows that are older than this.
ALTER TABLE message ADD COLUMN seq integer;
-- What a session was at any place of its log. Few events are of the session itself, so the index is small.
CREATE INDEX event_session_seq_idx ON event (aggregate_id, seq) WHERE type >= 'session.' AND type < 'session/';
