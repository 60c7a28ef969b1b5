//! The statements of all backends.
//!
//! A statement that SQLite and PostgreSQL both understand is written once; others stand next to each other, with the
//! backend in their names. Parameters are `$1`, `$2` and so on, and appear in this order for the first time, because
//! SQLite numbers named parameters by their first appearance.

/// A parameter of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    /// `NULL`.
    Null,
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// A text that users or programs wrote. PostgreSQL replaces NUL, which its texts cannot contain.
    Text(std::borrow::Cow<'a, str>),
    /// JSON, which never contains NUL.
    Json(std::borrow::Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn maybe(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::text)
    }

    pub(crate) fn number(number: u64) -> Self {
        Self::Int(to_column(number))
    }

    pub(crate) fn maybe_number(number: Option<u64>) -> Self {
        number.map_or(Self::Null, Self::number)
    }
}

/// A number for a column. Numbers of events were checked before; a clock or a limit beyond 63 bits becomes the maximum.
pub(crate) fn to_column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

// The log.

/// The owner and the counter of a session.
pub(crate) const SEQUENCE: &str = "SELECT seq, owner_id, fence FROM event_sequence WHERE aggregate_id = $1";
/// All sessions with an owner.
pub(crate) const OWNED: &str = "SELECT aggregate_id, owner_id FROM event_sequence WHERE owner_id IS NOT NULL";
pub(crate) const OWN: &str = "UPDATE event_sequence SET owner_id = $1, fence = $2 WHERE aggregate_id = $3";
pub(crate) const DISOWN: &str =
    "UPDATE event_sequence SET owner_id = NULL WHERE aggregate_id = $1 AND fence = $2";
pub(crate) const ASK_TO_STOP: &str = "UPDATE event_sequence SET stopped = fence WHERE aggregate_id = $1";
/// The stop requests for an owner.
pub(crate) const STOPPED_SQLITE: &str =
    "SELECT aggregate_id, fence FROM event_sequence WHERE owner_id = $1 AND stopped = fence";
/// The stop requests for an owner, and the sessions that it no longer owns.
#[cfg(feature = "postgres")]
pub(crate) const STOPPED_POSTGRES: &str = "SELECT held.id, held.fence
    FROM unnest($2::text[], $3::bigint[]) AS held (id, fence) JOIN event_sequence ON aggregate_id = held.id
    WHERE event_sequence.fence > held.fence OR stopped = held.fence
        OR (event_sequence.fence = held.fence AND owner_id IS DISTINCT FROM $1)";
/// Whether an event of the session itself was stored after a `seq`.
pub(crate) const ROW_CHANGED: &str = "SELECT 1 FROM event
    WHERE aggregate_id = $1 AND seq > $2 AND type >= 'session.' AND type < 'session/' LIMIT 1";
pub(crate) const EVENT_EXISTS: &str = "SELECT 1 FROM event WHERE id = $1";

pub(crate) const EVENTS_SQLITE: &str = "SELECT position, id, seq, type, data, time FROM event
    WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3";
/// The page ends after the event with which it exceeds `$4` bytes. Sizes are read without the values.
#[cfg(feature = "postgres")]
pub(crate) const EVENTS_POSTGRES: &str = "SELECT position, id, seq, type, data, time FROM (
    SELECT *, sum(octet_length(data)) OVER (ORDER BY position) - octet_length(data) AS before FROM (
        SELECT position, id, seq, type, data, time FROM event
        WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3) AS page) AS sized
    WHERE before < $4 ORDER BY position";
pub(crate) const EVENTS_OF_SQLITE: &str = "SELECT position, id, seq, type, data, time FROM event
    WHERE aggregate_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3";
#[cfg(feature = "postgres")]
pub(crate) const EVENTS_OF_POSTGRES: &str = "SELECT position, id, seq, type, data, time FROM (
    SELECT *, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before FROM (
        SELECT position, id, seq, type, data, time FROM event
        WHERE aggregate_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3) AS page) AS sized
    WHERE before < $4 ORDER BY seq";
/// The sizes of a session's events, latest first.
pub(crate) const SIZES: &str = "SELECT seq, octet_length(data) FROM event
    WHERE aggregate_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3";
pub(crate) const HISTORY_SQLITE: &str =
    "SELECT id, aggregate_id, seq, type, data FROM event WHERE position > $1 ORDER BY position";
#[cfg(feature = "postgres")]
pub(crate) const HISTORY_POSTGRES: &str = "SELECT id, aggregate_id, seq, type, data FROM (
    SELECT *, sum(octet_length(data)) OVER (ORDER BY position) - octet_length(data) AS before FROM (
        SELECT event.id, aggregate_id, event.seq, type, data, position FROM event
        LEFT JOIN unnest($1::text[], $2::bigint[]) AS known (id, seq) ON known.id = aggregate_id
        WHERE known.seq IS NULL OR event.seq > known.seq ORDER BY position LIMIT $3) AS page) AS sized
    WHERE before < $4 ORDER BY position";
/// The session's last own event before a `seq`. SQLite names the index, so that a plan that scans the log is an error.
pub(crate) const SESSION_BEFORE_SQLITE: &str = "SELECT type, data FROM event INDEXED BY event_session_seq_idx
    WHERE aggregate_id = $1 AND seq < $2 AND type >= 'session.' AND type < 'session/' ORDER BY seq DESC LIMIT 1";
#[cfg(feature = "postgres")]
pub(crate) const SESSION_BEFORE_POSTGRES: &str = "SELECT type, data FROM event
    WHERE aggregate_id = $1 AND seq < $2 AND type >= 'session.' AND type < 'session/' ORDER BY seq DESC LIMIT 1";

// Projections. `changes` says which event runs which statement.

pub(crate) const SESSION_EXISTS: &str = "SELECT 1 FROM session WHERE id = $1";
pub(crate) const MESSAGE_EXISTS: &str = "SELECT 1 FROM message WHERE id = $1 AND session_id = $2";

/// Writes a session's row, if its project exists.
pub(crate) const PUT_SESSION: &str = "INSERT INTO session (
        id, project_id, workspace_id, parent_id, slug, directory, path, title, version, share_url,
        summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input,
        tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, tokens_total, revert, permission,
        agent, model, access, owner, team, time_created, time_updated, time_compacting, time_archived, data)
    SELECT $1, id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33 FROM project WHERE id = $34
    ON CONFLICT (id) DO UPDATE SET
        project_id = excluded.project_id, workspace_id = excluded.workspace_id, parent_id = excluded.parent_id,
        slug = excluded.slug, directory = excluded.directory, path = excluded.path, title = excluded.title,
        version = excluded.version, share_url = excluded.share_url,
        summary_additions = excluded.summary_additions, summary_deletions = excluded.summary_deletions,
        summary_files = excluded.summary_files, summary_diffs = excluded.summary_diffs,
        metadata = excluded.metadata, cost = excluded.cost, tokens_input = excluded.tokens_input,
        tokens_output = excluded.tokens_output, tokens_reasoning = excluded.tokens_reasoning,
        tokens_cache_read = excluded.tokens_cache_read, tokens_cache_write = excluded.tokens_cache_write,
        tokens_total = excluded.tokens_total, revert = excluded.revert, permission = excluded.permission,
        agent = excluded.agent, model = excluded.model, access = excluded.access, owner = excluded.owner,
        team = excluded.team, time_created = excluded.time_created,
        time_updated = excluded.time_updated, time_compacting = excluded.time_compacting,
        time_archived = excluded.time_archived, data = excluded.data";
pub(crate) const DELETE_SESSION: &str = "DELETE FROM session WHERE id = $1";
pub(crate) const DELETE_SESSIONS: &str = "DELETE FROM session";
/// An id that another session uses matches no row, so nothing changes.
pub(crate) const PUT_MESSAGE: &str =
    "INSERT INTO message (id, session_id, time_created, time_updated, data, seq)
    SELECT $1, id, $2, $3, $4, $5 FROM session WHERE id = $6
    ON CONFLICT (id) DO UPDATE SET time_created = excluded.time_created,
        time_updated = excluded.time_updated, data = excluded.data
    WHERE message.session_id = excluded.session_id";
pub(crate) const DELETE_MESSAGE: &str = "DELETE FROM message WHERE id = $1 AND session_id = $2";
pub(crate) const PUT_PART: &str =
    "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
    SELECT $1, id, session_id, $2, $3, $4 FROM message WHERE id = $5 AND session_id = $6
    ON CONFLICT (id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data
    WHERE part.message_id = excluded.message_id AND part.session_id = excluded.session_id";
pub(crate) const DELETE_PART: &str = "DELETE FROM part WHERE id = $1 AND message_id = $2 AND session_id = $3";
pub(crate) const DELETE_TODOS: &str = "DELETE FROM todo WHERE session_id = $1";
pub(crate) const INSERT_TODO: &str =
    "INSERT INTO todo (session_id, position, content, status, priority, time_created, time_updated)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
pub(crate) const PUT_REQUEST: &str =
    "INSERT INTO permission_request (id, session_id, time_created, data) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE SET data = excluded.data
    WHERE permission_request.session_id = excluded.session_id";
pub(crate) const DELETE_REQUEST: &str = "DELETE FROM permission_request WHERE id = $1 AND session_id = $2";

// Users.

/// The usage of an answer, if its session has an owner. The answers in a fork are older than its session and were counted
/// before.
pub(crate) const PUT_USAGE: &str = "INSERT INTO usage (message_id, owner, team, day, tokens, cost)
    SELECT $1, owner, team, $2, $3, $4 FROM session
    WHERE id = $5 AND owner IS NOT NULL AND time_created <= $6
    ON CONFLICT (message_id) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost
    WHERE usage.owner = excluded.owner";
pub(crate) const TRIM_USAGE: &str = "DELETE FROM usage WHERE day < $1";
pub(crate) const USAGE_OF_OWNER: &str =
    "SELECT CAST(coalesce(sum(tokens), 0) AS bigint), CAST(coalesce(sum(cost), 0) AS double precision)
    FROM usage WHERE owner = $1 AND day = $2";
pub(crate) const USAGE_OF_TEAM: &str =
    "SELECT CAST(coalesce(sum(tokens), 0) AS bigint), CAST(coalesce(sum(cost), 0) AS double precision)
    FROM usage WHERE team = $1 AND day = $2";
/// The sessions of a user that a process may work on, without those of subagents.
pub(crate) const RUNNING_OF_OWNER: &str = "SELECT session.id FROM event_sequence
    JOIN session ON session.id = event_sequence.aggregate_id
    WHERE event_sequence.owner_id IS NOT NULL AND session.owner = $1 AND session.parent_id IS NULL LIMIT $2";
pub(crate) const RUNNING_OF_TEAM: &str = "SELECT session.id FROM event_sequence
    JOIN session ON session.id = event_sequence.aggregate_id
    WHERE event_sequence.owner_id IS NOT NULL AND session.team = $1 AND session.parent_id IS NULL LIMIT $2";
pub(crate) const INSERT_AUDIT: &str =
    "INSERT INTO audit (time, account, action, target, detail, request, is_refusal)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
/// Removes the oldest entries of an action's kind above a number of them.
pub(crate) const TRIM_AUDIT: &str = "DELETE FROM audit WHERE is_refusal = $1 AND id <= coalesce(
    (SELECT id FROM audit WHERE is_refusal = $1 ORDER BY id DESC LIMIT 1 OFFSET $2), 0)";
pub(crate) const AUDIT: &str =
    "SELECT id, time, account, action, target, detail, request, is_refusal FROM audit
    WHERE id < $1 ORDER BY id DESC LIMIT $2";

// Statistics of the sessions that changed since `$1`, of the project `$2` or of all.

/// The sessions after the id `$3`, at most `$4`.
pub(crate) const STATISTICS_SESSIONS: &str =
    "SELECT tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, cost,
        time_created, time_updated, id FROM session
    WHERE time_updated >= $1 AND (CAST($2 AS text) IS NULL OR project_id = $2) AND id > $3 ORDER BY id LIMIT $4";
pub(crate) const STATISTICS_MESSAGES: &str =
    "SELECT count(*) FROM message JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND (CAST($2 AS text) IS NULL OR project_id = $2)";
/// The sums of each model, at most `$3`.
pub(crate) const STATISTICS_MODELS_SQLITE: &str = "SELECT
        coalesce(json_extract(message.data, '$.providerID'), '') || '/' || coalesce(json_extract(message.data, '$.modelID'), ''),
        count(*), total(json_extract(message.data, '$.tokens.input')), total(json_extract(message.data, '$.tokens.output')),
        total(json_extract(message.data, '$.tokens.reasoning')), total(json_extract(message.data, '$.tokens.cache.read')),
        total(json_extract(message.data, '$.tokens.cache.write')), total(json_extract(message.data, '$.cost'))
    FROM message JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND (CAST($2 AS text) IS NULL OR project_id = $2)
        AND json_extract(message.data, '$.role') = 'assistant'
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $3";
/// The messages after the id `$3`, at most `$4`. The program reads their JSON, because PostgreSQL's own functions refuse
/// `\u0000` anywhere in a text.
#[cfg(feature = "postgres")]
pub(crate) const STATISTICS_MODELS_POSTGRES: &str =
    "SELECT message.id, message.data FROM message JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND (CAST($2 AS text) IS NULL OR project_id = $2) AND message.id > $3
    ORDER BY message.id LIMIT $4";
/// The calls of each tool, at most `$3`.
pub(crate) const STATISTICS_TOOLS_SQLITE: &str =
    "SELECT coalesce(json_extract(part.data, '$.tool'), ''), count(*) FROM part JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND (CAST($2 AS text) IS NULL OR project_id = $2)
        AND json_extract(part.data, '$.type') = 'tool'
    GROUP BY 1 ORDER BY 2 DESC, min(part.rowid) LIMIT $3";
/// The same, with each name as a JSON string. The fields of a call are in this order in its row. The name is NULL if they
/// are longer than 4096 characters.
#[cfg(feature = "postgres")]
pub(crate) const STATISTICS_TOOLS_POSTGRES: &str = r#"SELECT (regexp_match(left(part.data, 4096),
        '^\{"type":"tool","callID":"(?:[^"\\]|\\.)*","tool":("(?:[^"\\]|\\.)*")'))[1], count(*)
    FROM part JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND (CAST($2 AS text) IS NULL OR project_id = $2)
        AND left(part.data, 14) = '{"type":"tool"'
    GROUP BY 1 ORDER BY 2 DESC, min(part.id) LIMIT $3"#;

// Drafts.

pub(crate) const PUT_DRAFT: &str = "INSERT INTO draft (part_id, message_id, session_id, time_updated, data)
    SELECT id, message_id, session_id, $1, $2 FROM part WHERE id = $3 AND message_id = $4 AND session_id = $5
    ON CONFLICT (part_id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data";
pub(crate) const DELETE_DRAFT: &str = "DELETE FROM draft WHERE part_id = $1";
pub(crate) const DELETE_DRAFTS_OF_MESSAGE: &str = "DELETE FROM draft WHERE message_id = $1";
pub(crate) const DELETE_DRAFTS_OF_SESSION: &str = "DELETE FROM draft WHERE session_id = $1";
pub(crate) const ANY_DRAFT: &str = "SELECT 1 FROM draft LIMIT 1";
pub(crate) const DRAFTS: &str =
    "SELECT part_id, message_id, time_updated, data FROM draft WHERE session_id = $1 ORDER BY part_id";
pub(crate) const DRAFT_DATA: &str = "SELECT part_id, data FROM draft WHERE session_id = $1";

// Sessions, messages and parts.

/// The newest messages before a place, newest first.
pub(crate) const INFOS: &str = "SELECT id, data FROM message WHERE session_id = $1
    AND (time_created, id) < ($2, $3) ORDER BY time_created DESC, id DESC LIMIT $4";
pub(crate) const MESSAGE: &str = "SELECT id, data FROM message WHERE id = $1 AND session_id = $2";
pub(crate) const PARTS_SQLITE: &str = "SELECT id, data FROM part WHERE message_id = $1 ORDER BY id";
/// The parts of several messages.
#[cfg(feature = "postgres")]
pub(crate) const PARTS_POSTGRES: &str =
    "SELECT id, data, message_id FROM part WHERE message_id = ANY($1) ORDER BY message_id, id";
/// The newest message that does not fit into a page.
pub(crate) const FIRST_OMITTED: &str = "SELECT time_created, id FROM message WHERE session_id = $1
    AND (time_created, id) < ($2, $3) ORDER BY time_created DESC, id DESC LIMIT 1 OFFSET $4";
/// A session's messages between two others, with their parts, oldest first. The order includes the row id, because
/// SQLite does not know that ids are unique and would sort.
pub(crate) const MESSAGES_SQLITE: &str =
    "SELECT message.id, message.data, message.time_created, part.id, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id WHERE message.session_id = $1
    AND (message.time_created, message.id) > ($2, $3) AND (message.time_created, message.id) < ($4, $5)
    ORDER BY message.time_created, message.id, message.rowid, part.id";
/// The parts after another part of a message, and the messages after that message.
pub(crate) const MORE_MESSAGES_SQLITE: &str =
    "SELECT message.id, message.data, message.time_created, part.id, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id WHERE message.session_id = $1
    AND (message.time_created, message.id) >= ($2, $3) AND (message.time_created, message.id) < ($4, $5)
    AND (message.id <> $3 OR part.id > $6)
    ORDER BY message.time_created, message.id, message.rowid, part.id";
/// Both of the above in pages: a first page starts after a message and has no part.
#[cfg(feature = "postgres")]
pub(crate) const MESSAGES_POSTGRES: &str =
    "SELECT message.id, message.data, message.time_created, part.id, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id WHERE message.session_id = $1
    AND (message.time_created, message.id) >= ($2, $3) AND (message.time_created, message.id) < ($4, $5)
    AND (message.id <> $3 OR part.id > $6)
    ORDER BY message.time_created, message.id, part.id LIMIT $7";
pub(crate) const FIRST_SEQ: &str = "SELECT seq FROM message WHERE id = $1 AND session_id = $2";
/// The sessions that match a filter. The other backend builds the condition, because its plan depends on the text.
#[cfg(feature = "postgres")]
pub(crate) const SESSIONS_POSTGRES: &str = "SELECT id, data FROM session
    WHERE ($1::text IS NULL OR directory = $1) AND ($2::text IS NULL OR project_id = $2)
    AND ($3::text IS NULL OR parent_id = $3) AND ($4::text IS NULL OR strpos(lower(title), lower($4)) > 0)
    AND ($5::bigint IS NULL OR time_updated >= $5) AND (NOT $6::boolean OR parent_id IS NULL)
    AND ($7::text IS NULL OR strpos(directory || '/', $7) = 1) AND ($8::text IS NULL OR project_id <> $8)
    AND ($9::bigint IS NULL OR time_updated < $9) AND (NOT $10::boolean OR time_archived IS NULL)
    ORDER BY time_updated DESC, id LIMIT $11";
#[cfg(feature = "postgres")]
pub(crate) const SESSION_POSTGRES: &str = "SELECT id, data FROM session WHERE id = $1";
pub(crate) const TODOS: &str =
    "SELECT content, status, priority FROM todo WHERE session_id = $1 ORDER BY position LIMIT $2";
pub(crate) const REQUESTS: &str =
    "SELECT id, data FROM permission_request ORDER BY time_created, id LIMIT $1";

// Projects and approvals.

pub(crate) const PUT_PROJECT: &str =
    "INSERT INTO project (id, worktree, vcs, name, time_created, time_updated, time_initialized,
        sandboxes, icon_url, icon_url_override, icon_color, commands)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (id) DO UPDATE SET worktree = excluded.worktree, vcs = excluded.vcs,
        name = excluded.name, time_created = excluded.time_created,
        time_updated = excluded.time_updated, time_initialized = excluded.time_initialized,
        sandboxes = excluded.sandboxes, icon_url = excluded.icon_url,
        icon_url_override = excluded.icon_url_override, icon_color = excluded.icon_color,
        commands = excluded.commands";
pub(crate) const PROJECTS: &str =
    "SELECT id, worktree, vcs, name, time_created, time_updated, time_initialized,
        sandboxes, icon_url, icon_url_override, icon_color, commands
    FROM project ORDER BY time_updated DESC, id LIMIT $1";
pub(crate) const PROJECT_OF: &str =
    "SELECT id, worktree, vcs, name, time_created, time_updated, time_initialized,
        sandboxes, icon_url, icon_url_override, icon_color, commands
    FROM project WHERE worktree = $1 ORDER BY time_updated DESC, id LIMIT 1";

pub(crate) const APPROVAL_EXISTS: &str = "SELECT 1 FROM permission JOIN permission_scope USING (id)
    WHERE project_id = $1 AND directory = $2 AND action = $3 AND resource = $4 AND rules = $5";
pub(crate) const INSERT_APPROVAL: &str =
    "INSERT INTO permission (id, project_id, action, resource, time_created, time_updated)
    VALUES ($1, $2, $3, $4, $5, $6)";
pub(crate) const INSERT_SCOPE: &str =
    "INSERT INTO permission_scope (id, directory, rules) VALUES ($1, $2, $3)";
pub(crate) const TRIM_APPROVALS: &str = "DELETE FROM permission WHERE id IN (
    SELECT id FROM permission JOIN permission_scope USING (id) WHERE project_id = $1 AND directory = $2
    ORDER BY time_created DESC, id DESC LIMIT 9223372036854775807 OFFSET $3)";
pub(crate) const APPROVALS: &str = "SELECT permission.id, project_id, action, resource, time_created,
        coalesce(directory, '') AS directory, coalesce(rules, '') AS rules
    FROM permission LEFT JOIN permission_scope USING (id)
    WHERE (CAST($1 AS text) IS NULL OR project_id = $1) AND (CAST($2 AS text) IS NULL OR directory = $2)
    ORDER BY time_created, permission.id LIMIT $3";
pub(crate) const DELETE_APPROVAL: &str = "DELETE FROM permission WHERE id = $1";

#[cfg(test)]
mod tests {
    /// The numbers of the parameters of a statement, in the order of the text.
    fn parameters(sql: &str) -> Vec<usize> {
        let number = |rest: &str| {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().expect("a number follows `$`")
        };
        // Every second piece is a text in quotes, such as a path of JSON.
        let outside = sql.split('\'').step_by(2);
        outside.flat_map(|piece| piece.split('$').skip(1)).map(number).collect()
    }

    #[test]
    fn parameters_appear_in_the_order_of_their_numbers() {
        let source = include_str!("sql.rs").split("#[cfg(test)]\nmod tests").next().expect("the statements");
        let mut count = 0;
        for statement in source.split("pub(crate) const ").skip(1) {
            let (name, sql) = statement.split_once(": &str =").expect("a statement");
            if name.ends_with("_POSTGRES") {
                continue;
            }
            let sql = sql.split('"').nth(1).expect("a text");
            let mut greatest = 0;
            for number in parameters(sql) {
                assert!(number <= greatest + 1, "`{name}` uses ${number} before ${}", greatest + 1);
                greatest = greatest.max(number);
            }
            count += 1;
        }
        assert!(count > 40, "{count}");
    }
}
