//! Stores a group of appends in one transaction.
//!
//! The transaction first locks the head of the log and reads what the appends need. Then it sends all changes at once and
//! reads their results. Positions are counted here, under the lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use codewright_proto::{Envelope, Event, EventId};
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::lease::Sequence;
use super::link::{Link, Request, Text};
use super::writer::{Append, Work};
use crate::changes::{self, Exists, Step, Unchanged, unknown};
use crate::node::Node;
use crate::record::Record;
use crate::sql::{self, to_column};
use crate::sync::Incoming;
use crate::{Condition, Error, Stamps, upcast};

pub(super) const LOCK_HEAD: &str = "SELECT position FROM store_head FOR UPDATE";
const MOVE_HEAD: &str = "UPDATE store_head SET position = $1";
const SEQUENCES: &str =
    "SELECT aggregate_id, seq, owner_id, fence FROM event_sequence WHERE aggregate_id = ANY($1)";
const PUT_SEQUENCES: &str = "INSERT INTO event_sequence (aggregate_id, seq)
    SELECT * FROM unnest($1::text[], $2::bigint[])
    ON CONFLICT (aggregate_id) DO UPDATE SET seq = excluded.seq";
const INSERT_EVENTS: &str = "INSERT INTO event (position, id, aggregate_id, seq, type, data, time)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[])";
const HAS_DRAFTS: &str = "SELECT 1 FROM draft WHERE session_id = ANY($1) LIMIT 1";
const KNOWN_IDS: &str = "SELECT id FROM event WHERE id = ANY($1)";
const POSITION_OF: &str = "SELECT position FROM event WHERE id = $1";
/// Wakes the other processes. The text is this process's name, which ignores it.
const NOTIFY: &str = "SELECT pg_notify('codewright_store', $1)";

/// Envelopes with the size of their JSON, for the feed.
pub(super) type SizedEnvelopes = Vec<(Arc<Envelope>, usize)>;

/// How the changes of an append are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// All at once.
    Together,
    /// One after the other, to find the reason of a failure.
    StepByStep,
}

/// What a group needs besides the appends.
pub(super) struct Context<'a> {
    pub(super) node: &'a Node,
    pub(super) stamps: &'a Stamps,
    pub(super) pace: Pace,
}

/// An event with its place in the log.
struct Placed {
    id: EventId,
    position: u64,
    seq: u64,
    time: u64,
    event: Event,
    record: Arc<Record>,
}

/// What became of an append before anything was sent.
enum Outcome {
    /// Its events are these, in the list of all.
    Stored(std::ops::Range<usize>),
    Failed(Error),
}

/// Begins a transaction and locks the head of the log, which orders all writers.
pub(super) async fn begin(link: &mut Link) -> Result<(), Fault> {
    link.begin(&[(LOCK_HEAD, vec![])]).await?;
    Ok(())
}

/// The rows that the conditions and the places of a group depend on, read under the lock.
pub(super) struct Begun {
    /// The last position.
    pub(super) head: u64,
    sequences: HashMap<String, Sequence>,
    has_drafts: bool,
}

/// Begins the transaction of a group and locks the head of the log.
pub(super) async fn begin_group(link: &mut Link, group: &[Append]) -> Result<Begun, Fault> {
    let sessions = sessions_of(group);
    let requests =
        [(LOCK_HEAD, vec![]), (SEQUENCES, vec![&sessions as _]), (HAS_DRAFTS, vec![&sessions as _])];
    let rows = link.begin(&requests).await?;
    let [head, found, drafts] = rows.as_slice() else { return Err(Fault::Unchanged) };
    let head = head.first().ok_or(Fault::Unchanged)?.get::<_, i64>(0).unsigned_abs();
    let sequences = found.iter().map(|row| (row.get(0), Sequence::read(row, 1))).collect();
    Ok(Begun { head, sequences, has_drafts: !drafts.is_empty() })
}

/// The sessions that a group names.
fn sessions_of(group: &[Append]) -> Vec<&str> {
    let mut sessions = Vec::new();
    for append in group {
        match &append.condition {
            Condition::Always | Condition::RowUntouched { .. } => {}
            Condition::Untouched { session, .. } | Condition::Leased { session, .. } => {
                sessions.push(session.as_str());
            }
        }
        match &append.work {
            Work::Events(events) => {
                sessions.extend(events.iter().map(|(_, event, _)| event.session_id().as_str()));
            }
            Work::Draft(draft) => sessions.push(draft.0.session_id.as_str()),
            Work::Incoming(events) => {
                sessions.extend(events.iter().map(|event| event.aggregate_id.as_str()));
            }
        }
    }
    sessions.sort_unstable();
    sessions.dedup();
    // The ids of incoming events are not checked yet.
    sessions.retain(|session| !session.contains('\0'));
    sessions
}

/// The position of an event, if it was stored.
pub(super) async fn position_of(link: &mut Link, id: &EventId) -> Result<Option<u64>, Fault> {
    let row = link.row(POSITION_OF, &[&id.as_str()]).await?;
    Ok(row.map(|row| row.get::<_, i64>(0).unsigned_abs()))
}

/// The prepared group: its outcomes, and what is stored if the transaction commits.
pub(super) struct Prepared {
    outcomes: Vec<Outcome>,
    placed: Vec<Placed>,
}

impl Prepared {
    /// The id and the position of the first event, by which a commit of unknown outcome is recognized.
    pub(super) fn mark(&self) -> Option<(EventId, u64)> {
        self.placed.first().map(|first| (first.id.clone(), first.position))
    }

    /// The answers to the callers.
    pub(super) fn answers(self) -> Vec<Result<SizedEnvelopes, Error>> {
        let envelope = |placed: Placed| {
            let Placed { id, position, seq, time, event, record } = placed;
            (Arc::new(Envelope { id, position, seq, time, event }), record.len_bytes())
        };
        let envelopes: Vec<_> = self.placed.into_iter().map(envelope).collect();
        let answer = |outcome| match outcome {
            Outcome::Stored(range) => {
                let range: std::ops::Range<usize> = range;
                Ok(envelopes[range].to_vec())
            }
            Outcome::Failed(error) => Err(error),
        };
        self.outcomes.into_iter().map(answer).collect()
    }
}

/// Makes the changes of a group in the transaction that [`begin_group`] has begun.
pub(super) async fn apply(
    link: &mut Link,
    group: &[Append],
    begun: Begun,
    context: &Context<'_>,
) -> Result<Prepared, Fault> {
    let Context { node, stamps, pace } = *context;
    let mut state = State::read(link, group, begun).await?;
    let mut outcomes = Vec::with_capacity(group.len());
    let mut placed = Vec::new();
    let mut drafts = Vec::new();
    for append in group {
        let outcome = match state.holds(node, &append.condition) {
            Ok(()) => state.place(append, stamps, &mut placed),
            Err(error) => Err(error),
        };
        if let (Ok(_), Work::Draft(draft)) = (&outcome, &append.work) {
            drafts.push((placed.len(), draft.as_ref(), stamps.clock.now_ms()));
        }
        outcomes.push(match outcome {
            Ok(range) => Outcome::Stored(range),
            Err(error) => Outcome::Failed(error),
        });
    }
    if placed.is_empty() && drafts.is_empty() {
        return Ok(Prepared { outcomes, placed });
    }
    let rows = LogRows::of(&state, &placed, node.existing_name().unwrap_or_default());
    let mut steps = Vec::new();
    let mut has_drafts = state.has_drafts;
    let mut drafts = drafts.into_iter().peekable();
    for (at, one) in placed.iter().enumerate() {
        while let Some((_, (part, record), time)) = drafts.next_if(|(before, ..)| *before <= at) {
            steps.push(changes::put_draft(part, time, record));
            has_drafts = true;
        }
        steps.extend(changes::project(&one.event, one.seq, one.time, &one.record)?);
        steps.extend(changes::settle(&one.event).filter(|_| has_drafts));
    }
    steps.extend(drafts.map(|(_, (part, record), time)| changes::put_draft(part, time, record)));
    match pace {
        Pace::Together => run_together(link, &rows, &steps).await?,
        Pace::StepByStep => {
            link.changes(&rows.before()).await?;
            run_step_by_step(link, &steps).await?;
            link.changes(&rows.after()).await?;
        }
    }
    drop(steps);
    Ok(Prepared { outcomes, placed })
}

/// The rows that a group depends on, and its own changes of them.
#[derive(Clone)]
struct State {
    position: u64,
    sequences: HashMap<String, Sequence>,
    /// The sessions whose counter was changed, in the order of their first event.
    changed: Vec<String>,
    has_drafts: bool,
    /// The ids of other stores' events that are in use.
    used: HashSet<String>,
    /// The sessions with a row that was changed after the `seq` of a condition.
    row_changed: HashSet<(String, u64)>,
    /// The last `seq` with which this group changes a session's own row.
    own_rows: HashMap<String, u64>,
}

impl State {
    async fn read(link: &mut Link, group: &[Append], begun: Begun) -> Result<Self, Fault> {
        let mut ids = Vec::new();
        let mut row_changed = HashSet::new();
        for append in group {
            if let Condition::RowUntouched { session, seq } = &append.condition {
                let after = to_column(*seq);
                if link.row(sql::ROW_CHANGED, &[&session.as_str(), &after]).await?.is_some() {
                    row_changed.insert((session.to_string(), *seq));
                }
            }
            if let Work::Incoming(events) = &append.work {
                ids.extend(events.iter().map(|event| event.id.as_str()));
            }
        }
        // The ids of incoming events are not checked yet.
        ids.retain(|id| !id.contains('\0'));
        let used = if ids.is_empty() {
            HashSet::new()
        } else {
            link.rows(KNOWN_IDS, &[&ids]).await?.into_iter().map(|row| row.get(0)).collect()
        };
        let Begun { head, sequences, has_drafts } = begun;
        let (changed, own_rows) = (Vec::new(), HashMap::new());
        Ok(Self { position: head, sequences, changed, has_drafts, used, row_changed, own_rows })
    }

    /// Fails if a condition does not hold.
    fn holds(&self, node: &Node, condition: &Condition) -> Result<(), Error> {
        match condition {
            Condition::Always => Ok(()),
            Condition::Untouched { session, seq } => {
                let last = self.sequences.get(session.as_str()).map(|sequence| sequence.seq);
                if last == Some(*seq) { Ok(()) } else { Err(Error::Conflict { id: session.to_string() }) }
            }
            Condition::RowUntouched { session, seq } => {
                let in_group = self.own_rows.get(session.as_str()).is_some_and(|own| own > seq);
                if in_group || self.row_changed.contains(&(session.to_string(), *seq)) {
                    Err(Error::Conflict { id: session.to_string() })
                } else {
                    Ok(())
                }
            }
            Condition::Leased { session, fence } => {
                let sequence = self.sequences.get(session.as_str());
                if sequence.is_some_and(|sequence| sequence.is_of(node, *fence)) {
                    Ok(())
                } else {
                    Err(Error::Fenced { id: session.to_string() })
                }
            }
        }
    }

    /// Gives the events of an append their places.
    fn place(
        &mut self,
        append: &Append,
        stamps: &Stamps,
        placed: &mut Vec<Placed>,
    ) -> Result<std::ops::Range<usize>, Error> {
        let first = placed.len();
        let time = stamps.clock.now_ms();
        match &append.work {
            Work::Draft(_) => {}
            Work::Events(events) => {
                for (id, event, record) in events {
                    placed.push(self.next(id.clone(), event.clone(), Arc::clone(record), time));
                }
            }
            Work::Incoming(events) => {
                // An error inside the list must not leave the first ones.
                let before = self.clone();
                if let Err(error) = self.place_incoming(events, time, placed) {
                    *self = before;
                    placed.truncate(first);
                    return Err(error);
                }
            }
        }
        Ok(first..placed.len())
    }

    fn place_incoming(
        &mut self,
        events: &[Incoming],
        time: u64,
        placed: &mut Vec<Placed>,
    ) -> Result<(), Error> {
        let mut before: Option<(&str, u64)> = None;
        for foreign in events {
            let event = upcast::decode(&foreign.kind, foreign.data.get())?;
            let id = foreign.checked(&event, before)?;
            before = Some((&foreign.aggregate_id, foreign.seq));
            let next = self.sequences.get(&foreign.aggregate_id).map_or(0, |sequence| sequence.seq + 1);
            if foreign.seq < next {
                continue;
            }
            if foreign.seq > next {
                return Err(foreign.gap(next));
            }
            if !self.used.insert(id.to_string()) {
                return Err(Error::IdInUse { kind: "event", id: id.to_string() });
            }
            let record = Arc::new(Record::new(&event)?);
            placed.push(self.next(id, event, record, foreign.time.unwrap_or(time)));
        }
        Ok(())
    }

    fn next(&mut self, id: EventId, event: Event, record: Arc<Record>, time: u64) -> Placed {
        let session = event.session_id().as_str();
        let seq = match self.sequences.get_mut(session) {
            Some(sequence) => {
                sequence.seq += 1;
                sequence.seq
            }
            None => {
                self.sequences.insert(session.to_owned(), Sequence::default());
                0
            }
        };
        self.position += 1;
        self.changed.push(session.to_owned());
        if event.name().starts_with("session.") {
            self.own_rows.insert(session.to_owned(), seq);
        }
        Placed { id, position: self.position, seq, time, event, record }
    }
}

/// The columns of the counters and of the log.
struct LogRows<'a> {
    sessions: Vec<&'a str>,
    last: Vec<i64>,
    positions: Vec<i64>,
    ids: Vec<&'a str>,
    of: Vec<&'a str>,
    seqs: Vec<i64>,
    kinds: Vec<String>,
    data: Vec<Text<'a>>,
    times: Vec<i64>,
    head: i64,
    /// The name of this process.
    name: String,
}

impl<'a> LogRows<'a> {
    fn of(state: &'a State, placed: &'a [Placed], name: String) -> Self {
        let mut sessions: Vec<&str> = state.changed.iter().map(String::as_str).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let last = |id: &&str| to_column(state.sequences.get(*id).map_or(0, |one| one.seq));
        Self {
            last: sessions.iter().map(last).collect(),
            sessions,
            positions: placed.iter().map(|one| to_column(one.position)).collect(),
            ids: placed.iter().map(|one| one.id.as_str()).collect(),
            of: placed.iter().map(|one| one.event.session_id().as_str()).collect(),
            seqs: placed.iter().map(|one| to_column(one.seq)).collect(),
            kinds: placed.iter().map(|one| format!("{}.{}", one.event.name(), one.event.version())).collect(),
            data: placed.iter().map(|one| Text(one.record.properties())).collect(),
            times: placed.iter().map(|one| to_column(one.time)).collect(),
            head: to_column(state.position),
            name,
        }
    }

    /// The statements before the projections: the counters, to which events refer, and the events.
    fn before(&self) -> Vec<Request<'_>> {
        if self.positions.is_empty() {
            return Vec::new();
        }
        vec![
            (PUT_SEQUENCES, vec![&self.sessions, &self.last]),
            (
                INSERT_EVENTS,
                vec![&self.positions, &self.ids, &self.of, &self.seqs, &self.kinds, &self.data, &self.times],
            ),
        ]
    }

    /// The statements after them: the head, and the notification, which is sent with the commit.
    fn after(&self) -> Vec<Request<'_>> {
        if self.positions.is_empty() {
            return Vec::new();
        }
        vec![(MOVE_HEAD, vec![&self.head]), (NOTIFY, vec![&self.name])]
    }
}

async fn run_together(link: &mut Link, rows: &LogRows<'_>, steps: &[Step<'_>]) -> Result<(), Fault> {
    let ids: Vec<Option<&str>> = steps
        .iter()
        .map(|step| match step {
            Step::RequireSession(id) => Some(id.as_str()),
            Step::Run { .. } => None,
        })
        .collect();
    let mut requests = rows.before();
    let before = requests.len();
    requests.extend(steps.iter().zip(&ids).map(|(step, id)| -> Request<'_> {
        match step {
            Step::RequireSession(_) => (sql::SESSION_EXISTS, vec![id]),
            Step::Run { sql, values, .. } => {
                (*sql, values.iter().map(|value| value as &(dyn ToSql + Sync)).collect())
            }
        }
    }));
    requests.extend(rows.after());
    let counts = link.changes(&requests).await?;
    let is_fine = |(step, count): (&Step<'_>, &u64)| match step {
        Step::RequireSession(_) => *count > 0,
        Step::Run { unchanged, .. } => *count > 0 || matches!(unchanged, Unchanged::Fine),
    };
    if steps.iter().zip(&counts[before..]).all(is_fine) { Ok(()) } else { Err(Fault::Unchanged) }
}

async fn run_step_by_step(link: &mut Link, steps: &[Step<'_>]) -> Result<(), Fault> {
    for step in steps {
        match step {
            Step::RequireSession(id) => {
                if link.row(sql::SESSION_EXISTS, &[&id.as_str()]).await?.is_none() {
                    return Err(unknown("session", id).into());
                }
            }
            Step::Run { sql, values, unchanged } => {
                if link.change(sql, values).await? == 0 {
                    explain(link, *unchanged).await?;
                }
            }
        }
    }
    Ok(())
}

/// The error of a statement that changed no row, unless nothing had to change.
async fn explain(link: &mut Link, unchanged: Unchanged<'_>) -> Result<(), Fault> {
    for (question, error) in unchanged.questions() {
        let row = match question {
            Exists::Session(id) => link.row(sql::SESSION_EXISTS, &[&id]).await?,
            Exists::Message { session, id } => link.row(sql::MESSAGE_EXISTS, &[&id, &session]).await?,
        };
        if row.is_none() {
            return Err(error.into());
        }
    }
    unchanged.error().map_or(Ok(()), |error| Err(error.into()))
}
