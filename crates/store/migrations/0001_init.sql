-- The tables and columns that a store of the OpenCode format has, as far as this
-- program has the data, so that importing and inspecting need no translation.
-- Ours alone: `event.position`, `event.time`, `session.tokens_total` and
-- `permission_request`.

CREATE TABLE project (
    id text PRIMARY KEY,
    worktree text NOT NULL,
    vcs text,
    name text,
    icon_url text,
    icon_url_override text,
    icon_color text,
    time_created integer NOT NULL,
    time_updated integer NOT NULL,
    time_initialized integer,
    sandboxes text NOT NULL,
    commands text
);

CREATE TABLE session (
    id text PRIMARY KEY,
    project_id text NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    workspace_id text,
    parent_id text,
    slug text NOT NULL,
    directory text NOT NULL,
    path text,
    title text NOT NULL,
    version text NOT NULL,
    share_url text,
    summary_additions integer,
    summary_deletions integer,
    summary_files integer,
    summary_diffs text,
    metadata text,
    cost real DEFAULT 0 NOT NULL,
    tokens_input integer DEFAULT 0 NOT NULL,
    tokens_output integer DEFAULT 0 NOT NULL,
    tokens_reasoning integer DEFAULT 0 NOT NULL,
    tokens_cache_read integer DEFAULT 0 NOT NULL,
    tokens_cache_write integer DEFAULT 0 NOT NULL,
    revert text,
    permission text,
    agent text,
    model text,
    time_created integer NOT NULL,
    time_updated integer NOT NULL,
    time_compacting integer,
    time_archived integer,
    tokens_total integer
);
CREATE INDEX session_project_idx ON session (project_id);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE INDEX session_time_updated_idx ON session (time_updated);

-- `data` is the message without `id` and `sessionID`.
CREATE TABLE message (
    id text PRIMARY KEY,
    session_id text NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    time_created integer NOT NULL,
    time_updated integer NOT NULL,
    data text NOT NULL
);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);

-- `data` is the part without `id`, `sessionID` and `messageID`.
CREATE TABLE part (
    id text PRIMARY KEY,
    message_id text NOT NULL REFERENCES message (id) ON DELETE CASCADE,
    session_id text NOT NULL,
    time_created integer NOT NULL,
    time_updated integer NOT NULL,
    data text NOT NULL
);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);

-- The permission requests that nobody has answered yet.
CREATE TABLE permission_request (
    id text PRIMARY KEY,
    session_id text NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    time_created integer NOT NULL,
    data text NOT NULL
);
CREATE INDEX permission_request_session_idx ON permission_request (session_id);

-- The last `seq` of each session. Kept when the session is deleted, like its events.
CREATE TABLE event_sequence (
    aggregate_id text PRIMARY KEY,
    seq integer NOT NULL,
    owner_id text
);

-- The log. `type` is the event's name, a dot and the version of its shape;
-- `data` is what clients receive as `properties`.
CREATE TABLE event (
    position integer PRIMARY KEY AUTOINCREMENT,
    id text NOT NULL,
    aggregate_id text NOT NULL REFERENCES event_sequence (aggregate_id) ON DELETE CASCADE,
    seq integer NOT NULL,
    type text NOT NULL,
    data text NOT NULL,
    time integer NOT NULL
);
CREATE UNIQUE INDEX event_id_idx ON event (id);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
