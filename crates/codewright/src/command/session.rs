//! `session`: lists, deletes, undoes and redoes sessions.

mod undo;

use std::io;
use std::process::ExitCode;

use codewright_config::Env;
use codewright_engine::inspect::{self, Local};
use codewright_engine::{Engine, SessionFilter};
use codewright_proto::{Clock, Session, SessionId};
use serde_json::json;

use crate::clean::clean_line;
use crate::cli::{ListFormat, SessionArgs, SessionCommand};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The least width of the title column.
const MIN_TITLE_CHARS: usize = 25;
/// The least width of the id column.
const MIN_ID_CHARS: usize = 20;

pub(crate) fn main(args: &SessionArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let done = match &args.command {
            SessionCommand::List { max_count, format, .. } => list(&engine, *max_count, *format).await,
            SessionCommand::Undo(args) => undo::undo(&engine, args).await,
            SessionCommand::Redo(args) => undo::redo(&engine, args).await,
            SessionCommand::Delete { session, .. } => delete(&engine, session).await,
        };
        engine.close().await?;
        done
    })
}

async fn list(engine: &Engine, limit: Option<usize>, format: ListFormat) -> anyhow::Result<ExitCode> {
    let project = engine.transfer().project_of(engine.default_directory()).await.map_err(engine_error)?;
    let filter = SessionFilter { project: Some(project.id), roots: true, limit, ..SessionFilter::default() };
    let sessions = engine.sessions().list(filter).await.map_err(engine_error)?;
    if sessions.is_empty() && format == ListFormat::Table {
        style::note("this project has no sessions yet; `codewright` starts one");
        return Ok(ExitCode::SUCCESS);
    }
    let mut output = Output::new();
    let written = match format {
        ListFormat::Table => table(&mut output, &sessions)?,
        ListFormat::Json => {
            let sessions: Vec<_> = sessions.iter().map(entry).collect();
            output.write_value(&sessions)
        }
    };
    exit_code(written.and_then(|()| output.finish()))
}

fn entry(session: &Session) -> serde_json::Value {
    json!({
        "id": session.id,
        "title": session.title,
        "updated": session.time.updated,
        "created": session.time.created,
        "projectId": session.project_id,
        "directory": session.directory,
    })
}

fn table(output: &mut Output, sessions: &[Session]) -> anyhow::Result<io::Result<()>> {
    let moments: Vec<_> = sessions.iter().map(|session| session.time.updated).collect();
    let mut times = inspect::local_times(&[&moments[..], &[Clock::system().now_ms()]].concat())?;
    let today = times.pop();
    let rows: Vec<_> = sessions
        .iter()
        .zip(times)
        .map(|(session, time)| (session.id.to_string(), clean_line(&session.title), moment(time, today)))
        .collect();
    let widest = |of: fn(&(String, String, String)) -> &str, least: usize| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let (ids, titles) = (widest(|row| &row.0, MIN_ID_CHARS), widest(|row| &row.1, MIN_TITLE_CHARS));
    let head = format!("{:<ids$}  {:<titles$}  Updated", "Session ID", "Title");
    let width = head.chars().count();
    let mut write = || {
        output.write(&format!("{head}\n{}\n", "─".repeat(width)))?;
        for (id, title, time) in &rows {
            output.write(&format!("{id:<ids$}  {title:<titles$}  {time}\n"))?;
        }
        Ok(())
    };
    Ok(write())
}

/// `02:10`, or `2026-05-28 20:26` if it is not today.
fn moment(time: Local, today: Option<Local>) -> String {
    let clock = format!("{:02}:{:02}", time.hour, time.minute);
    let date = |time: Local| (time.year, time.month, time.day);
    if today.map(date) == Some(date(time)) {
        return clock;
    }
    format!("{}-{:02}-{:02} {clock}", time.year, time.month, time.day)
}

async fn delete(engine: &Engine, id: &str) -> anyhow::Result<ExitCode> {
    let id = SessionId::parse(id)?;
    engine.sessions().delete(&id).await.map_err(engine_error)?;
    style::note(&format!("Session {id} deleted"));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_date_unless_it_is_today() {
        let at = |day, hour, minute| Local { year: 2026, month: 5, day, hour, minute };
        for (time, expected) in
            [(at(28, 20, 26), "2026-05-28 20:26"), (at(29, 0, 5), "00:05"), (at(29, 12, 0), "12:00")]
        {
            assert_eq!(moment(time, Some(at(29, 1, 1))), expected);
        }
    }
}
