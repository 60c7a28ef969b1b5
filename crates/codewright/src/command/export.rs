//! `export`: writes a session as JSON, in the format of OpenCode's export.
//!
//! Messages are read and written one at a time, so that a long session needs no more memory than a short one.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_config::Env;
use codewright_engine::{Engine, Export, SessionFilter, Texts};
use codewright_proto::{Session, SessionId};
use serde_json::Value;

use crate::clean::clean_line;
use crate::cli::ExportArgs;
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The number of sessions to choose from.
const MAX_CHOICES: usize = 20;

pub(crate) fn main(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let done = export(&engine, args).await;
        engine.close().await?;
        done
    })
}

async fn export(engine: &Engine, args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let id = match &args.session {
        Some(id) => SessionId::parse(id)?,
        None => choose(engine).await?,
    };
    let texts = if args.sanitize { Texts::Redacted } else { Texts::Whole };
    let mut export = engine.transfer().export_session(&id, texts).await.map_err(engine_error)?;
    style::note(&format!("Exporting session: {id}"));
    let mut output = Output::new();
    let written = write(&mut export, &mut output).await?;
    exit_code(written.and_then(|()| output.finish()))
}

/// Writes the document message by message. The inner error is that of standard output.
async fn write(export: &mut Export, output: &mut Output) -> anyhow::Result<io::Result<()>> {
    let begun = format!("{{\n  \"info\": {},\n  \"messages\": [", indented(export.info(), "  ")?);
    if let Err(error) = output.write_json(&begun) {
        return Ok(Err(error));
    }
    let mut separator = "\n    ";
    while let Some(message) = export.next().await.map_err(engine_error)? {
        if let Err(error) = output.write_json(&format!("{separator}{}", indented(&message, "    ")?)) {
            return Ok(Err(error));
        }
        separator = ",\n    ";
    }
    let mut end = if separator.starts_with(',') { "\n  ]".to_owned() } else { "]".to_owned() };
    for (key, value) in export.others() {
        end.push_str(&format!(",\n  {}: {}", Value::String(key), indented(&value, "  ")?));
    }
    Ok(output.write_json(&format!("{end}\n}}\n")))
}

/// Indented JSON. A line feed within a text is escaped, so every line feed here is part of the layout.
fn indented(value: &Value, indent: &str) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)?.replace('\n', &format!("\n{indent}")))
}

/// Lets the user choose one of the newest sessions.
async fn choose(engine: &Engine) -> anyhow::Result<SessionId> {
    let project = engine.transfer().project_of(engine.default_directory()).await.map_err(engine_error)?;
    let filter = SessionFilter {
        project: Some(project.id),
        roots: true,
        limit: Some(MAX_CHOICES),
        ..SessionFilter::default()
    };
    let sessions = engine.sessions().list(filter).await.map_err(engine_error)?;
    if sessions.is_empty() {
        bail!("this project has no sessions yet");
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let newest = sessions.first().map(|session| session.id.to_string()).unwrap_or_default();
        bail!(
            "missing session id\nuse `codewright export {newest}` for the newest session; `codewright session list` lists all"
        );
    }
    ask(&sessions)
}

fn ask(sessions: &[Session]) -> anyhow::Result<SessionId> {
    let mut stderr = io::stderr();
    for (n, session) in sessions.iter().enumerate() {
        writeln!(stderr, "{:>3}  {}  {}", n + 1, session.id, clean_line(&session.title))?;
    }
    write!(stderr, "Session to export [1]: ")?;
    stderr.flush()?;
    let mut line = String::new();
    if io::stdin().read_line(&mut line).context("cannot read the answer")? == 0 {
        bail!("no session was chosen");
    }
    let answer = line.trim();
    let chosen = match answer.parse::<usize>() {
        _ if answer.is_empty() => sessions.first(),
        Ok(n) => n.checked_sub(1).and_then(|n| sessions.get(n)),
        Err(_) => sessions.iter().find(|session| session.id.as_str() == answer),
    };
    chosen
        .map(|session| session.id.clone())
        .with_context(|| format!("`{answer}` is not one of the listed sessions"))
}
