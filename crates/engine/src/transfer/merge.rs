//! The merge of an incoming session with the stored one.
//!
//! The sessions are compared, then a pure function decides, then the result is written. So a session that
//! must not change is never written, and repeating an import writes nothing.

use std::collections::HashSet;

use codewright_proto::{
    Event, Message, MessageId, MessageWithParts, Part, PartBody, PartId, Principal, Rule, Session, SessionId,
    Todo,
};

use super::provenance::{self, Origin, Provenance, Rest};
use crate::Error;
use crate::batch::Batch;
use crate::inner::Inner;

/// The result of merging an incoming session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The session was created.
    Imported,
    /// The stored session got the new items.
    Updated,
    /// The stored session already had every item.
    Unchanged,
    /// The stored session was kept unchanged, for this reason.
    Kept(&'static str),
}

/// Whether an import writes or only reports what it would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The import writes.
    Write,
    /// The import only reports.
    DryRun,
}

/// The messages of an incoming session, which can be read repeatedly.
pub(super) trait Messages {
    /// Returns to the first message.
    fn rewind(&mut self);
    /// Returns the next message, oldest first.
    async fn next(&mut self) -> Result<Option<MessageWithParts>, Error>;
    /// Returns the items left over from the messages read since the start.
    fn take_rest(&mut self) -> Rest;
}

/// A session from another program or machine.
pub(super) struct Incoming<M> {
    pub(super) info: Session,
    /// `None` if the source does not contain it.
    pub(super) todos: Option<Vec<Todo>>,
    pub(super) fingerprint: String,
    /// Whether the source is the session's own database: then every change counts, even with the same date.
    pub(super) is_live: bool,
    pub(super) messages: M,
}

/// The state of the stored session compared with its last import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The session has not changed here since; the source may be newer.
    Untouched { newer: bool },
    /// The import was interrupted.
    Unfinished,
    /// The session was created or continued here.
    Ours,
}

/// The differences between the stored and the incoming session.
#[derive(Debug, Default)]
struct Differences {
    /// Messages and parts that only the incoming session has.
    added: usize,
    /// Messages and parts with different content.
    changed: usize,
    /// Messages that only the stored session has.
    missing: Vec<MessageId>,
    /// Parts that only the stored session has, of messages that both have.
    missing_parts: Vec<(MessageId, PartId)>,
    /// The session's own fields or its to-do list.
    info: bool,
}

/// The action of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// Write nothing.
    Nothing,
    /// Make the stored session equal to the incoming one.
    Follow,
    /// Add the new items.
    Add,
    /// Write nothing, for this reason.
    Keep(&'static str),
}

fn decide(standing: Standing, differences: &Differences) -> Decision {
    let lost = differences.missing.len() + differences.missing_parts.len();
    let same = differences.added + differences.changed + lost == 0;
    match standing {
        Standing::Unfinished if lost == 0 => Decision::Follow,
        Standing::Untouched { newer: true } if same && !differences.info => Decision::Nothing,
        Standing::Untouched { newer: true } => Decision::Follow,
        Standing::Untouched { newer: false } if same && differences.info => Decision::Follow,
        _ if differences.added + differences.changed == 0 => Decision::Nothing,
        _ if differences.changed + lost == 0 => Decision::Add,
        Standing::Untouched { .. } => Decision::Keep("it has the same date and other content"),
        Standing::Unfinished | Standing::Ours => Decision::Keep("it was continued here since"),
    }
}

/// Imports a session, or reports the effect without writing.
pub(super) async fn merge<M: Messages>(
    inner: &Inner,
    incoming: &mut Incoming<M>,
    mode: Mode,
) -> Result<Outcome, Error> {
    let id = incoming.info.id.clone();
    let Some(here) = inner.store.session(&id).await? else {
        if mode == Mode::Write {
            create(inner, incoming).await?;
        }
        return Ok(Outcome::Imported);
    };
    keep_own(&here, &mut incoming.info);
    let known = provenance::load(inner, &id).await?;
    if let Some(known) = &known
        && known.origin.seq.is_some()
        && known.origin.fingerprint == incoming.fingerprint
        && here.directory == incoming.info.directory
        && here.project_id == incoming.info.project_id
    {
        return Ok(Outcome::Unchanged);
    }
    let standing = standing(inner, &id, known.as_ref(), incoming).await?;
    let differences = compare(inner, &here, incoming).await?;
    let decision = decide(standing, &differences);
    if mode == Mode::Write {
        match decision {
            Decision::Nothing if standing == Standing::Ours => {}
            Decision::Nothing => remember(inner, incoming, known, None).await?,
            Decision::Follow | Decision::Add => {
                if standing != Standing::Ours {
                    let rest = known.as_ref().map(|known| known.rest.clone()).unwrap_or_default();
                    let unfinished = Provenance { origin: origin(incoming, None), rest };
                    provenance::save(inner, &id, &unfinished).await?;
                }
                let seq = write(inner, &here, incoming, decision, &differences).await?;
                remember(inner, incoming, known, seq).await?;
            }
            Decision::Keep(_) => {}
        }
    }
    Ok(match decision {
        Decision::Nothing => Outcome::Unchanged,
        Decision::Follow | Decision::Add => Outcome::Updated,
        Decision::Keep(reason) => Outcome::Kept(reason),
    })
}

/// Keeps what was chosen here: who may use the session, and the rules that the document does not contain.
fn keep_own(here: &Session, incoming: &mut Session) {
    incoming.access.clone_from(&here.access);
    let theirs = incoming.permission.take().unwrap_or_default();
    let is_of_document = |rule: &Rule| rule.by == Some(Principal::Document);
    let rules = here.permission.iter().flatten();
    if rules.clone().filter(|rule| is_of_document(rule)).eq(theirs.iter()) {
        // The order stays, because a later rule of the user lifts a restriction of the document.
        incoming.permission.clone_from(&here.permission);
        return;
    }
    // A rule of a session that an older version imported has no mark.
    let is_theirs = |rule: &Rule| {
        let document = || Rule { by: Some(Principal::Document), ..rule.clone() };
        is_of_document(rule) || rule.by.is_none() && theirs.contains(&document())
    };
    let own: Vec<Rule> = rules.filter(|rule| !is_theirs(rule)).cloned().collect();
    incoming.permission = Some(own.into_iter().chain(theirs).collect());
}

async fn standing<M>(
    inner: &Inner,
    id: &SessionId,
    known: Option<&Provenance>,
    incoming: &Incoming<M>,
) -> Result<Standing, Error> {
    let Some(Provenance { origin, .. }) = known else { return Ok(Standing::Ours) };
    let Some(seq) = origin.seq else { return Ok(Standing::Unfinished) };
    if inner.store.events_of(id, seq + 1, 1).await?.is_empty() {
        let (there, here) = (incoming.info.time.updated, origin.updated);
        let changed = incoming.is_live && there == here && incoming.fingerprint != origin.fingerprint;
        return Ok(Standing::Untouched { newer: there > here || changed });
    }
    Ok(Standing::Ours)
}

async fn compare<M: Messages>(
    inner: &Inner,
    here: &Session,
    incoming: &mut Incoming<M>,
) -> Result<Differences, Error> {
    let mut differences = Differences { info: *here != incoming.info, ..Differences::default() };
    if let Some(todos) = &incoming.todos {
        differences.info |= *todos != inner.store.todos(&here.id).await?;
    }
    let infos = inner.store.infos(&here.id).await?;
    let mut ours: HashSet<_> = infos.iter().map(|info| info.id().clone()).collect();
    drop(infos);
    incoming.messages.rewind();
    while let Some(theirs) = incoming.messages.next().await? {
        if !ours.remove(theirs.info.id()) {
            differences.added += 1 + theirs.parts.len();
            continue;
        }
        let Some(mine) = inner.store.message(&here.id, theirs.info.id()).await? else { continue };
        differences.changed += usize::from(mine.info != theirs.info);
        let (added, changed) = parts_to_write(&mine, &theirs);
        differences.added += added.len();
        differences.changed += changed.len();
        let there: HashSet<_> = theirs.parts.iter().map(|part| &part.id).collect();
        let gone = mine.parts.iter().filter(|part| !there.contains(&part.id));
        differences.missing_parts.extend(gone.map(|part| (part.message_id.clone(), part.id.clone())));
    }
    differences.missing = ours.into_iter().collect();
    Ok(differences)
}

/// Returns the incoming parts that are new or different.
fn parts_to_write<'a>(
    mine: &MessageWithParts,
    theirs: &'a MessageWithParts,
) -> (Vec<&'a Part>, Vec<&'a Part>) {
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for part in &theirs.parts {
        match mine.parts.iter().find(|mine| mine.id == part.id) {
            None => added.push(part),
            Some(mine) if mine != part => changed.push(part),
            Some(_) => {}
        }
    }
    (added, changed)
}

async fn create<M: Messages>(inner: &Inner, incoming: &mut Incoming<M>) -> Result<(), Error> {
    let id = incoming.info.id.clone();
    let unfinished = Provenance { origin: origin(incoming, None), rest: Rest::default() };
    provenance::save(inner, &id, &unfinished).await?;
    let mut batch = Batch::new(inner);
    if let Err(error) = create_in(&mut batch, incoming).await {
        if batch.seq().is_some() {
            let event = Event::SessionDeleted { session_id: id.clone(), info: incoming.info.clone() };
            inner.store.append(vec![event]).await?;
        }
        provenance::forget(inner, &id).await;
        return Err(error);
    }
    let seq = batch.seq();
    remember(inner, incoming, None, seq).await
}

async fn create_in<M: Messages>(batch: &mut Batch<'_>, incoming: &mut Incoming<M>) -> Result<(), Error> {
    let id = incoming.info.id.clone();
    batch.push(Event::SessionCreated { session_id: id.clone(), info: incoming.info.clone() }).await?;
    incoming.messages.rewind();
    while let Some(MessageWithParts { info, parts }) = incoming.messages.next().await? {
        let created = info.created();
        batch.push(Event::MessageUpdated { session_id: id.clone(), info }).await?;
        for part in parts {
            batch.push(part_event(part, created)).await?;
        }
    }
    if let Some(todos) = incoming.todos.clone().filter(|todos| !todos.is_empty()) {
        batch.push(Event::TodoUpdated { session_id: id, todos }).await?;
    }
    batch.flush().await
}

async fn write<M: Messages>(
    inner: &Inner,
    here: &Session,
    incoming: &mut Incoming<M>,
    decision: Decision,
    differences: &Differences,
) -> Result<Option<u64>, Error> {
    let id = &here.id;
    let mut batch = Batch::new(inner);
    if decision == Decision::Follow {
        // First, so that they are removed with the first append: an interrupted update must not look like a
        // session with other messages.
        for message_id in &differences.missing {
            let event = Event::MessageRemoved { session_id: id.clone(), message_id: message_id.clone() };
            batch.push(event).await?;
        }
        for (message_id, part_id) in differences.missing_parts.iter().cloned() {
            batch.push(Event::PartRemoved { session_id: id.clone(), message_id, part_id }).await?;
        }
        if let Some(todos) = incoming.todos.clone() {
            batch.push(Event::TodoUpdated { session_id: id.clone(), todos }).await?;
        }
    }
    incoming.messages.rewind();
    while let Some(theirs) = incoming.messages.next().await? {
        let created = theirs.info.created();
        let mine = inner.store.message(id, theirs.info.id()).await?;
        if mine.as_ref().is_none_or(|mine| mine.info != theirs.info) {
            let info: Message = theirs.info.clone();
            batch.push(Event::MessageUpdated { session_id: id.clone(), info }).await?;
        }
        let parts = match &mine {
            Some(mine) => {
                let (mut added, changed) = parts_to_write(mine, &theirs);
                added.extend(changed);
                added
            }
            None => theirs.parts.iter().collect(),
        };
        for part in parts {
            batch.push(part_event(part.clone(), created)).await?;
        }
    }
    if decision == Decision::Follow || incoming.info.time.updated > here.time.updated {
        batch.push(Event::SessionUpdated { session_id: id.clone(), info: incoming.info.clone() }).await?;
    }
    batch.flush().await?;
    Ok(batch.seq())
}

/// Records the state of the source that is now stored.
async fn remember<M: Messages>(
    inner: &Inner,
    incoming: &mut Incoming<M>,
    known: Option<Provenance>,
    seq: Option<u64>,
) -> Result<(), Error> {
    let id = incoming.info.id.clone();
    let mut rest = incoming.messages.take_rest();
    if let Some(known) = known {
        rest.absorb(known.rest);
    }
    let seq = match seq {
        Some(seq) => seq,
        None => last_seq(inner, &id).await?,
    };
    provenance::save(inner, &id, &Provenance { origin: origin(incoming, Some(seq)), rest }).await
}

fn origin<M>(incoming: &Incoming<M>, seq: Option<u64>) -> Origin {
    Origin { fingerprint: incoming.fingerprint.clone(), updated: incoming.info.time.updated, seq }
}

/// Returns the sequence number of a session's last event, by bisection: the log is only readable forwards.
async fn last_seq(inner: &Inner, id: &SessionId) -> Result<u64, Error> {
    let (mut there, mut step) = (0_u64, 1_u64);
    while !inner.store.events_of(id, there + step, 1).await?.is_empty() {
        there += step;
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if !inner.store.events_of(id, there + step, 1).await?.is_empty() {
            there += step;
        }
    }
    Ok(there)
}

fn part_event(part: Part, message_created: u64) -> Event {
    let time = match &part.body {
        PartBody::Text(text) => text.time.map(|time| time.start),
        PartBody::Reasoning { time, .. } => Some(time.start),
        _ => None,
    };
    Event::PartUpdated { session_id: part.session_id.clone(), part, time: time.unwrap_or(message_created) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(standing: Standing, [added, changed, missing]: [usize; 3], info: bool, expected: Decision) {
        let id = MessageId::parse("msg_1").unwrap();
        let missing = vec![id; missing];
        let differences = Differences { added, changed, missing, missing_parts: Vec::new(), info };
        assert_eq!(decide(standing, &differences), expected, "{standing:?} {differences:?}");
    }

    #[test]
    fn a_session_that_did_not_change_here_follows_its_source() {
        let newer = Standing::Untouched { newer: true };
        check(newer, [0, 0, 0], false, Decision::Nothing);
        check(newer, [0, 0, 0], true, Decision::Follow);
        check(newer, [3, 2, 1], true, Decision::Follow);
    }

    #[test]
    fn a_source_of_the_same_date_only_adds() {
        let same = Standing::Untouched { newer: false };
        check(same, [0, 0, 0], true, Decision::Follow);
        check(same, [2, 0, 0], true, Decision::Add);
        check(same, [0, 2, 0], false, Decision::Keep("it has the same date and other content"));
    }

    #[test]
    fn a_session_that_was_continued_here_is_never_overwritten() {
        check(Standing::Ours, [0, 0, 5], true, Decision::Nothing);
        check(Standing::Ours, [4, 0, 0], true, Decision::Add);
        check(Standing::Ours, [4, 0, 1], true, Decision::Keep("it was continued here since"));
        check(Standing::Ours, [0, 1, 0], true, Decision::Keep("it was continued here since"));
    }

    #[test]
    fn an_interrupted_import_is_completed_unless_the_session_was_continued_here() {
        check(Standing::Unfinished, [4, 1, 0], true, Decision::Follow);
        check(Standing::Unfinished, [4, 1, 1], true, Decision::Keep("it was continued here since"));
    }
}
