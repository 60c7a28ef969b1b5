//! `db`: runs SQL on the database of sessions.
//!
//! Queries do not wait for writers. A statement may write, as in OpenCode; a warning then says that the event log,
//! from which the rows follow, stays unchanged.

mod view;

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use codewright_config::Env;
use codewright_engine::inspect::{self, Cell, QueryEvent, Stop};
use serde_json::{Map, Value};

use crate::cli::{DbArgs, DbCommand, RowFormat};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The longest statement that is read from standard input.
const MAX_STATEMENT_BYTES: u64 = 16 * 1024 * 1024;

pub(crate) fn main(args: &DbArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(DbCommand::Copy { from, to, .. }) = &args.command {
        return copy(&runtime, [from, to]);
    }
    // Opening the engine creates the database if it does not exist yet.
    let path = runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let path = engine.transfer().database().map_err(engine_error)?;
        engine.close().await?;
        anyhow::Ok(path)
    })?;
    let mut rows =
        Rows { output: Output::new(), format: args.format, columns: Vec::new(), count: 0, failed: None };
    if let Some(DbCommand::View { to, watch, remove, .. }) = &args.command {
        let work = match (watch, remove) {
            (_, true) => view::Work::Remove,
            (true, false) => view::Work::Watch,
            (false, false) => view::Work::Once,
        };
        return view::main(&path, to.as_deref(), work);
    }
    if let Some(DbCommand::Path(_)) = &args.command {
        let written = rows.output.write(&format!("{}\n", path.display()));
        return exit_code(written.and_then(|()| rows.output.finish()));
    }
    let run = |sql: &str, rows: &mut Rows| -> anyhow::Result<bool> {
        inspect::query(&path, sql, |event| rows.handle(event))?;
        Ok(rows.failed.is_none())
    };
    if let Some(sql) = &args.query {
        run(sql, &mut rows)?;
    } else {
        statements(|sql| run(sql, &mut rows))?;
    }
    let Rows { output, failed, .. } = rows;
    exit_code(failed.map_or_else(|| output.finish(), Err))
}

/// Copies all sessions from one place to another.
fn copy(runtime: &tokio::runtime::Runtime, places: [&str; 2]) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let copied = runtime.block_on(codewright_engine::copy_sessions(&env, places)).map_err(engine_error)?;
    let mut output = Output::new();
    let written = output.write(&format!(
        "{} events of {} sessions with {} messages are in both stores, {} of them from an earlier copy; every row was compared\n",
        copied.events, copied.sessions, copied.messages, copied.found
    ));
    exit_code(written.and_then(|()| output.finish()))
}

/// Calls `run` for each statement of standard input. A statement ends with `;` at the end of a line.
fn statements(mut run: impl FnMut(&str) -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let is_terminal = io::stdin().is_terminal();
    let mut input = io::stdin().lock();
    let mut statement = String::new();
    loop {
        if is_terminal {
            let prompt = if statement.is_empty() { "sql> " } else { "...> " };
            // The prompt is not essential.
            drop(io::stderr().write_all(prompt.as_bytes()));
        }
        let room = MAX_STATEMENT_BYTES.saturating_sub(statement.len() as u64);
        let read =
            input.by_ref().take(room).read_line(&mut statement).context("cannot read standard input")?;
        ensure!(
            read > 0 || room > 0,
            "a statement on standard input is longer than {MAX_STATEMENT_BYTES} bytes"
        );
        let is_over = read == 0;
        if !is_over && !statement.trim_end().ends_with(';') {
            continue;
        }
        match run(&statement) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // An interactive user can correct the statement.
            Err(error) if is_terminal => style::error(&error),
            Err(error) => return Err(error),
        }
        statement.clear();
        if is_over {
            return Ok(());
        }
    }
}

/// Writes rows as they are found.
struct Rows {
    output: Output,
    format: RowFormat,
    columns: Vec<String>,
    count: usize,
    failed: Option<io::Error>,
}

impl Rows {
    fn handle(&mut self, event: QueryEvent) -> Result<(), Stop> {
        self.write(event).map_err(|error| {
            self.failed = Some(error);
            Stop
        })
    }

    fn write(&mut self, event: QueryEvent) -> io::Result<()> {
        match (event, self.format) {
            (QueryEvent::Writes, _) => {
                style::warning(
                    "this statement writes rows; the event log, from which rows are rebuilt, stays unchanged",
                );
                Ok(())
            }
            (QueryEvent::Columns(columns), _) => {
                self.columns = columns;
                self.count = 0;
                Ok(())
            }
            (QueryEvent::Row(cells), RowFormat::Tsv) => {
                if self.count == 0 {
                    self.output.write(&format!("{}\n", self.columns.join("\t")))?;
                }
                self.count += 1;
                let cells: Vec<_> = cells.into_iter().map(text).collect();
                self.output.write(&format!("{}\n", cells.join("\t")))
            }
            (QueryEvent::Row(cells), RowFormat::Json) => {
                let start = if self.count == 0 { "[\n  " } else { ",\n  " };
                self.count += 1;
                let row: Map<_, _> = self.columns.iter().cloned().zip(cells.into_iter().map(value)).collect();
                let row = serde_json::to_string_pretty(&row)?.replace('\n', "\n  ");
                self.output.write_json(&format!("{start}{row}"))
            }
            (QueryEvent::End, RowFormat::Tsv) => Ok(()),
            (QueryEvent::End, RowFormat::Json) => {
                self.output.write(if self.count == 0 { "[]\n" } else { "\n]\n" })
            }
        }
    }
}

fn text(cell: Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text,
        Cell::Blob(bytes) => bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(","),
    }
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Real(number) => number.into(),
        Cell::Text(text) => text.into(),
        // The JSON that OpenCode prints for bytes.
        Cell::Blob(bytes) => bytes
            .into_iter()
            .enumerate()
            .map(|(n, byte)| (n.to_string(), byte.into()))
            .collect::<Map<_, _>>()
            .into(),
    }
}
