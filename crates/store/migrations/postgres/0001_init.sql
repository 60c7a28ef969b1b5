-- The tables of a store in PostgreSQL: those of the OpenCode format with the columns of the migrations for SQLite beside this
-- directory, and tables of ours that do what files do there. Texts are compared byte by byte (`COLLATE "C"`), so that both
-- backends have the same order. Numbers are 64 bits, times are milliseconds since 1970.

CREATE TABLE project (
    id text COLLATE "C" PRIMARY KEY,
    worktree text COLLATE "C" NOT NULL,
    vcs text COLLATE "C",
    name text COLLATE "C",
    icon_url text COLLATE "C",
    icon_url_override text COLLATE "C",
    icon_color text COLLATE "C",
    time_created bigint NOT NULL,
    time_updated bigint NOT NULL,
    time_initialized bigint,
    sandboxes text COLLATE "C" NOT NULL,
    commands text COLLATE "C"
);

-- `data` is the session as clients receive it; it is what is read. The columns are for finding and sorting.
CREATE TABLE session (
    id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    workspace_id text COLLATE "C",
    parent_id text COLLATE "C",
    slug text COLLATE "C" NOT NULL,
    directory text COLLATE "C" NOT NULL,
    path text COLLATE "C",
    title text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    share_url text COLLATE "C",
    summary_additions bigint,
    summary_deletions bigint,
    summary_files bigint,
    summary_diffs text COLLATE "C",
    metadata text COLLATE "C",
    cost double precision DEFAULT 0 NOT NULL,
    tokens_input bigint DEFAULT 0 NOT NULL,
    tokens_output bigint DEFAULT 0 NOT NULL,
    tokens_reasoning bigint DEFAULT 0 NOT NULL,
    tokens_cache_read bigint DEFAULT 0 NOT NULL,
    tokens_cache_write bigint DEFAULT 0 NOT NULL,
    revert text COLLATE "C",
    permission text COLLATE "C",
    agent text COLLATE "C",
    model text COLLATE "C",
    time_created bigint NOT NULL,
    time_updated bigint NOT NULL,
    time_compacting bigint,
    time_archived bigint,
    tokens_total bigint,
    data text COLLATE "C" NOT NULL
);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE INDEX session_time_updated_id_idx ON session (time_updated DESC, id);
CREATE INDEX session_project_time_updated_id_idx ON session (project_id, time_updated DESC, id);

-- `data` is the message without `id` and `sessionID`. `seq` is where in the session's log it was first stored.
CREATE TABLE message (
    id text COLLATE "C" PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    time_created bigint NOT NULL,
    time_updated bigint NOT NULL,
    data text COLLATE "C" NOT NULL,
    seq bigint NOT NULL
);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);

-- `data` is the part without `id`, `sessionID` and `messageID`.
CREATE TABLE part (
    id text COLLATE "C" PRIMARY KEY,
    message_id text COLLATE "C" NOT NULL REFERENCES message (id) ON DELETE CASCADE,
    session_id text COLLATE "C" NOT NULL,
    time_created bigint NOT NULL,
    time_updated bigint NOT NULL,
    data text COLLATE "C" NOT NULL
);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);

-- The permission requests that nobody has answered yet.
CREATE TABLE permission_request (
    id text COLLATE "C" PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    time_created bigint NOT NULL,
    data text COLLATE "C" NOT NULL
);
CREATE INDEX permission_request_session_idx ON permission_request (session_id);

-- A session's list of things to do, one row an item.
CREATE TABLE todo (
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    content text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    priority text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    time_created bigint NOT NULL,
    time_updated bigint NOT NULL,
    PRIMARY KEY (session_id, position)
);

-- The last `seq` of each session, kept when the session is deleted, like its events. `owner_id` is a row of `store_node`.
-- The fence counts the owners a session has had; `stopped` is the fence of an owner that was asked to stop.
CREATE TABLE event_sequence (
    aggregate_id text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    owner_id text COLLATE "C",
    fence bigint DEFAULT 0 NOT NULL,
    stopped bigint
) WITH (fillfactor = 70);
CREATE INDEX event_sequence_owner_idx ON event_sequence (owner_id) WHERE owner_id IS NOT NULL;

-- The log. `type` is the event's name, a dot and the version of its shape; `data` is what clients receive as `properties`.
CREATE TABLE event (
    position bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    aggregate_id text COLLATE "C" NOT NULL REFERENCES event_sequence (aggregate_id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    data text COLLATE "C" NOT NULL,
    time bigint NOT NULL
);
CREATE UNIQUE INDEX event_id_idx ON event (id);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX event_session_seq_idx ON event (aggregate_id, seq) WHERE type >= 'session.' AND type < 'session/';

-- The latest value of a part that is still growing: newer than the part's row and not in the log.
CREATE TABLE draft (
    part_id text COLLATE "C" PRIMARY KEY,
    message_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    time_updated bigint NOT NULL,
    data text COLLATE "C" NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX draft_session_idx ON draft (session_id);
CREATE INDEX draft_message_idx ON draft (message_id);

-- The approvals that a user gave with "always". An approval without a row in `permission_scope` does not count.
CREATE TABLE permission (
    id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    action text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    time_created bigint NOT NULL,
    time_updated bigint NOT NULL
);
CREATE INDEX permission_project_idx ON permission (project_id);
CREATE TABLE permission_scope (
    id text COLLATE "C" PRIMARY KEY REFERENCES permission (id) ON DELETE CASCADE,
    directory text COLLATE "C" NOT NULL,
    rules text COLLATE "C" NOT NULL
);

-- One row: the position of the last event. Every writer locks it until it commits, so positions are in the order of the
-- commits and have no gaps. A reader of the log that has seen a position never misses an earlier one.
CREATE TABLE store_head (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    position bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO store_head (position) VALUES (0);

-- The processes that own sessions. A process is alive until `alive_until`, by the database's clock, and moves it on.
CREATE TABLE store_node (
    id text COLLATE "C" PRIMARY KEY,
    alive_until timestamptz NOT NULL
) WITH (fillfactor = 50);
