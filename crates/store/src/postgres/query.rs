//! The read queries of the PostgreSQL backend.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{
    Envelope, Message, MessageId, MessageWithParts, Part, PermissionRequest, Project, ProjectId, Session,
    SessionId, Todo,
};
use tokio_postgres::Row;

use super::fault::Fault;
use super::link::Link;
use super::pool::{read, snapshot};
use super::{Postgres, lease, messages, statistics};
use crate::list::{Data, USUAL_BYTES, object, unreadable};
use crate::permission::MAX_LISTED;
use crate::queries::{Answer, Queries};
use crate::rows::{
    self, EventRow, HistoryRow, MAX_HISTORY_BYTES, MAX_HISTORY_EVENTS, MAX_PAGE_BYTES, MAX_PROJECTS,
    MAX_REQUESTS, MAX_TODOS, ProjectRow,
};
use crate::sql::{self, to_column};
use crate::users::{MAX_AUDIT_PAGE, MAX_RUNNING, living};
use crate::{
    Account, Approvals, Audited, Error, Holder, Json, Logged, MAX_SESSIONS, Members, MessagesJson, OpenWork,
    Orphan, Ownership, PageLimit, Rest, SavedPermission, SessionFilter, Usage, inspect,
};

impl Queries for Postgres {
    fn events_between(&self, after: u64, until: u64, limit: usize) -> Answer<'_, Vec<Envelope>> {
        read!(self, link => events(link, after, until, limit))
    }

    fn events_of<'a>(
        &'a self,
        session: &'a SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Envelope>> {
        read!(self, link => events_of(link, session, from_seq, limit))
    }

    fn seq_before<'a>(&'a self, session: &'a SessionId, until_seq: u64, limit: PageLimit) -> Answer<'a, u64> {
        read!(self, link => seq_before(link, session, until_seq, limit))
    }

    fn history(&self, known: HashMap<String, u64>) -> Answer<'_, Vec<Logged>> {
        read!(self, link => history(link, &known))
    }

    fn session_at<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<(u64, Session)>> {
        read!(self, link => snapshot!(link, session_at(link, id).await))
    }

    fn session_before<'a>(&'a self, id: &'a SessionId, until_seq: u64) -> Answer<'a, Option<Session>> {
        read!(self, link => session_before(link, id, until_seq))
    }

    fn sessions(&self, filter: SessionFilter) -> Answer<'_, Vec<Session>> {
        read!(self, link => sessions(link, &filter))
    }

    fn sessions_json(&self, filter: SessionFilter) -> Answer<'_, Json> {
        read!(self, link => async {
            let mut json = self.0.spare.take(USUAL_BYTES);
            json.push(b'[');
            for row in session_rows(link, &filter).await? {
                if json.len() > 1 {
                    json.push(b',');
                }
                object(&mut json, None, "", &Data::from(row.get::<_, &str>(1)))
                    .map_err(unreadable("session", row.get(0)))?;
            }
            json.push(b']');
            Ok(Json::new(json, &self.0.spare))
        })
    }

    fn transcript_at<'a>(&'a self, session: &'a SessionId) -> Answer<'a, (u64, Vec<MessageWithParts>)> {
        read!(on self.0.urgent, link => snapshot!(link, messages::transcript_at(link, session).await))
    }

    fn open_work<'a>(&'a self, session: &'a SessionId) -> Answer<'a, OpenWork> {
        read!(on self.0.urgent, link => snapshot!(link, open_work(link, session).await))
    }

    fn infos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Message>> {
        read!(self, link => messages::infos(link, session, None, None))
    }

    fn messages<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
    ) -> Answer<'a, Vec<MessageWithParts>> {
        read!(self, link => snapshot!(link, messages::messages(link, session, limit, None).await))
    }

    fn messages_before<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, (Vec<MessageWithParts>, bool)> {
        read!(self, link => snapshot!(link, messages::messages_before(link, session, limit, before.as_ref()).await))
    }

    fn messages_json<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, Option<MessagesJson>> {
        let spare = Arc::clone(&self.0.spare);
        read!(self, link => snapshot!(link, messages::list(link, &spare, session, limit, before.as_ref()).await))
    }

    fn more_messages_json(&self, rest: Rest) -> Answer<'_, (Json, Option<Rest>)> {
        let spare = Arc::clone(&self.0.spare);
        read!(self, link => snapshot!(link, messages::more(link, &spare, &rest).await))
    }

    fn message<'a>(
        &'a self,
        session: &'a SessionId,
        id: &'a MessageId,
    ) -> Answer<'a, Option<MessageWithParts>> {
        read!(self, link => snapshot!(link, messages::message(link, session, id).await))
    }

    fn first_seq<'a>(&'a self, session: &'a SessionId, message: &'a MessageId) -> Answer<'a, Option<u64>> {
        read!(self, link => async {
            let row = link.row(sql::FIRST_SEQ, &[&message.as_str(), &session.as_str()]).await?;
            Ok(row.map(|row| unsigned(&row, 0)))
        })
    }

    fn drafts<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<(Part, u64)>> {
        read!(self, link => messages::drafts(link, session))
    }

    fn todos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Todo>> {
        read!(self, link => async {
            let found = link.rows(sql::TODOS, &[&session.as_str(), &to_column(MAX_TODOS)]).await?;
            let todo = |row: Row| Todo { content: row.get(0), status: row.get(1), priority: row.get(2) };
            Ok(found.into_iter().map(todo).collect())
        })
    }

    fn pending_permissions(&self) -> Answer<'_, Vec<PermissionRequest>> {
        read!(self, link => requests(link))
    }

    fn saved_permissions(&self, filter: Approvals) -> Answer<'_, Vec<SavedPermission>> {
        read!(self, link => approvals(link, &filter))
    }

    fn statistics(&self, since: u64, project: Option<String>) -> Answer<'_, inspect::Usage> {
        Box::pin(async move {
            let project = project.as_deref();
            read!(self, link => snapshot!(link, statistics::sum_up(link, since, project).await)).await
        })
    }

    fn usage(&self, of: Account, day: u64) -> Answer<'_, Usage> {
        read!(self, link => async {
            let row = link.row(of.usage(), &[&of.name(), &to_column(day)]).await?;
            let usage = |row: Row| Usage { tokens: unsigned(&row, 0), cost: row.get(1) };
            Ok(row.map(usage).unwrap_or_default())
        })
    }

    fn running(&self, of: Account) -> Answer<'_, Vec<SessionId>> {
        Box::pin(async move {
            let owned = read!(self, link => async {
                let found = link.rows(of.running(), &[&of.name(), &to_column(MAX_RUNNING as u64)]).await?;
                let parse = |row: &Row| SessionId::parse(row.get(0)).map_err(unreadable("session", row.get(0)));
                Ok(found.iter().map(parse).collect::<Result<Vec<_>, Error>>()?)
            })
            .await?;
            living(self, owned).await
        })
    }

    fn audited(&self, before: Option<u64>, limit: usize) -> Answer<'_, Vec<Audited>> {
        read!(self, link => async {
            let before = to_column(before.unwrap_or(u64::MAX));
            let limit = to_column(limit.min(MAX_AUDIT_PAGE) as u64);
            Ok(link.rows(sql::AUDIT, &[&before, &limit]).await?.iter().map(audit_entry).collect())
        })
    }

    fn projects(&self) -> Answer<'_, Vec<Project>> {
        read!(self, link => async {
            let found = link.rows(sql::PROJECTS, &[&to_column(MAX_PROJECTS)]).await?;
            Ok(found.iter().map(project).collect::<Result<_, _>>()?)
        })
    }

    fn project_of<'a>(&'a self, worktree: &'a str) -> Answer<'a, Option<Project>> {
        read!(self, link => async {
            let found = link.row(sql::PROJECT_OF, &[&worktree]).await?;
            Ok(found.map(|row| project(&row)).transpose()?)
        })
    }

    fn holder<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Holder>> {
        read!(self, link => lease::holder(link, &self.0.node, session))
    }

    fn members(&self) -> Answer<'_, Members> {
        read!(on self.0.urgent, link => lease::members(link, &self.0.node))
    }

    fn ownership<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Ownership> {
        read!(self, link => lease::ownership(link, session))
    }

    fn orphans(&self, limit: usize) -> Answer<'_, Vec<Orphan>> {
        read!(on self.0.urgent, link => lease::orphans(link, &self.0.node, limit))
    }

    fn holders(&self) -> Answer<'_, Vec<(SessionId, Holder)>> {
        read!(self, link => lease::holders(link, &self.0.node))
    }
}

async fn open_work(link: &mut Link, session: &SessionId) -> Result<OpenWork, Fault> {
    let drafts = messages::drafts(link, session).await?;
    let (seq, transcript) = messages::transcript_at(link, session).await?;
    let mut requests = requests(link).await?;
    requests.retain(|request| request.session_id == *session);
    Ok(OpenWork { seq, transcript, drafts, requests })
}

async fn requests(link: &mut Link) -> Result<Vec<PermissionRequest>, Fault> {
    let found = link.rows(sql::REQUESTS, &[&to_column(MAX_REQUESTS)]).await?;
    Ok(found.iter().map(|row| rows::request(row.get(0), row.get(1))).collect::<Result<_, _>>()?)
}

fn audit_entry(row: &Row) -> Audited {
    Audited {
        id: unsigned(row, 0),
        time: unsigned(row, 1),
        account: row.get(2),
        action: row.get(3),
        target: row.get(4),
        detail: row.get(5),
        request: row.get(6),
        is_refusal: row.get::<_, i64>(7) != 0,
    }
}

pub(super) fn unsigned(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).unsigned_abs()
}

/// The events after `after` up to `until`: at most `limit`, fewer if they are large. Empty only at the end.
pub(super) async fn events(
    link: &mut Link,
    after: u64,
    until: u64,
    limit: usize,
) -> Result<Vec<Envelope>, Fault> {
    let (after, until, limit) = (to_column(after), to_column(until), to_column(limit as u64));
    let found = link.rows(sql::EVENTS_POSTGRES, &[&after, &until, &limit, &page_bytes()]).await?;
    Ok(found.iter().map(envelope).collect::<Result<_, _>>()?)
}

async fn events_of(
    link: &mut Link,
    session: &SessionId,
    from_seq: u64,
    limit: usize,
) -> Result<Vec<Envelope>, Fault> {
    let (from, limit) = (to_column(from_seq), to_column(limit as u64));
    let found =
        link.rows(sql::EVENTS_OF_POSTGRES, &[&session.as_str(), &from, &limit, &page_bytes()]).await?;
    Ok(found.iter().map(envelope).collect::<Result<_, _>>()?)
}

fn page_bytes() -> i64 {
    to_column(MAX_PAGE_BYTES as u64)
}

fn envelope(row: &Row) -> Result<Envelope, Error> {
    let event = EventRow {
        position: unsigned(row, 0),
        id: row.get(1),
        seq: unsigned(row, 2),
        kind: row.get(3),
        data: row.get(4),
        time: unsigned(row, 5),
    };
    event.envelope()
}

/// The `seq` of the first of the last events before `until_seq` that fit into `limit`.
async fn seq_before(
    link: &mut Link,
    session: &SessionId,
    until_seq: u64,
    limit: PageLimit,
) -> Result<u64, Fault> {
    let (until, events) = (to_column(until_seq), to_column(limit.events as u64));
    let (mut start, mut left) = (until_seq, limit.bytes);
    for row in link.rows(sql::SIZES, &[&session.as_str(), &until, &events]).await? {
        let size = u64::from(row.get::<_, i32>(1).unsigned_abs());
        let Some(rest) = left.checked_sub(size) else { break };
        (start, left) = (unsigned(&row, 0), rest);
    }
    Ok(start)
}

/// The events after those that the other store has, in the order of the log.
async fn history(link: &mut Link, known: &HashMap<String, u64>) -> Result<Vec<Logged>, Fault> {
    let (ids, seqs): (Vec<&str>, Vec<i64>) =
        known.iter().map(|(id, seq)| (id.as_str(), to_column(*seq))).unzip();
    let (most, bytes) = (to_column(MAX_HISTORY_EVENTS as u64), to_column(MAX_HISTORY_BYTES as u64));
    let found = link.rows(sql::HISTORY_POSTGRES, &[&ids, &seqs, &most, &bytes]).await?;
    let logged = |row: &Row| {
        let [id, session, kind, data] = [0, 1, 3, 4].map(|column| row.get(column));
        HistoryRow { id, session, seq: unsigned(row, 2), kind, data }.logged()
    };
    Ok(found.iter().map(logged).collect::<Result<_, _>>()?)
}

async fn session_at(link: &mut Link, id: &SessionId) -> Result<Option<(u64, Session)>, Fault> {
    let Some(row) = link.row(sql::SESSION_POSTGRES, &[&id.as_str()]).await? else { return Ok(None) };
    Ok(Some((lease::seq(link, id).await?.unwrap_or(0), session(&row)?)))
}

/// The session as it was before a position in its log; `None` before its creation.
async fn session_before(
    link: &mut Link,
    session: &SessionId,
    until_seq: u64,
) -> Result<Option<Session>, Fault> {
    let until = to_column(until_seq);
    let Some(row) = link.row(sql::SESSION_BEFORE_POSTGRES, &[&session.as_str(), &until]).await? else {
        return Ok(None);
    };
    Ok(rows::session_of(row.get(0), row.get(1))?)
}

async fn sessions(link: &mut Link, filter: &SessionFilter) -> Result<Vec<Session>, Fault> {
    Ok(session_rows(link, filter).await?.iter().map(session).collect::<Result<_, _>>()?)
}

async fn session_rows(link: &mut Link, filter: &SessionFilter) -> Result<Vec<Row>, Fault> {
    // A stored text has no NUL, so a filter with one fits nothing.
    let clean = |text: &String| text.replace('\0', "\u{fffd}");
    let directory = filter.directory.as_ref().map(clean);
    let project = filter.project.as_ref().map(ProjectId::as_str);
    let parent = filter.parent.as_ref().map(SessionId::as_str);
    let search = filter.search.as_ref().map(clean);
    let start = filter.start.map(to_column);
    let prefix = filter.prefix().as_ref().map(clean);
    let outside = filter.outside.as_ref().map(ProjectId::as_str);
    let before = filter.before.map(to_column);
    let limit = to_column(filter.limit.unwrap_or(MAX_SESSIONS).min(MAX_SESSIONS) as u64);
    let place: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [&directory, &project, &parent, &search];
    let rest: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&start, &filter.roots, &prefix, &outside, &before, &filter.unarchived, &limit];
    link.rows(sql::SESSIONS_POSTGRES, &[&place[..], &rest[..]].concat()).await
}

fn session(row: &Row) -> Result<Session, Error> {
    let id: &str = row.get(0);
    serde_json::from_str(row.get(1)).map_err(unreadable("session", id))
}

/// The approvals that match a filter, oldest first.
async fn approvals(link: &mut Link, filter: &Approvals) -> Result<Vec<SavedPermission>, Fault> {
    let project = filter.project.as_ref().map(ProjectId::as_str);
    let found = link.rows(sql::APPROVALS, &[&project, &filter.directory, &to_column(MAX_LISTED)]).await?;
    let approval = |row: Row| SavedPermission {
        id: row.get(0),
        project_id: ProjectId(row.get::<_, &str>(1).into()),
        action: row.get(2),
        resource: row.get(3),
        created_ms: unsigned(&row, 4),
        directory: row.get(5),
        rules: row.get(6),
    };
    Ok(found.into_iter().map(approval).collect())
}

fn project(row: &Row) -> Result<Project, Error> {
    let found = ProjectRow {
        id: row.get(0),
        worktree: row.get(1),
        vcs: row.get(2),
        name: row.get(3),
        created: unsigned(row, 4),
        updated: unsigned(row, 5),
        initialized: row.get::<_, Option<i64>>(6).map(i64::unsigned_abs),
        sandboxes: row.get(7),
        icon: [row.get(8), row.get(9), row.get(10)],
        commands: row.get(11),
    };
    found.project()
}
