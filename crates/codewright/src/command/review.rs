//! `review`: reviews changes and prints the findings as text, JSON or SARIF.
//!
//! The model answers with a value of a fixed schema. The session can read files and ask git about changes, and nothing
//! else: the text under review must not make it write, run or fetch something.

mod finding;
mod format;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_config::Env;
use codewright_engine::Instance;
use codewright_proto::{
    Action, Message, MessageWithParts, OutputFormat, PartInput, PromptInput, Rule, SessionInput,
};
use serde_json::Value;

use super::run::named;
use crate::cli::{Common, ReviewArgs, ReviewFormat};
use crate::connection::{Connection, client_error, working_directory};
use crate::output::{Output, exit_code};
use crate::style;
use finding::Review;
pub(crate) use finding::Severity;

/// The longest review.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// How often the model may correct an answer that does not fit the schema.
const RETRIES: u32 = 3;
/// The exit code if a finding is at least as severe as `--fail-on`.
const FOUND: u8 = 3;
/// What the model may do: the last matching rule decides.
const RULES: [(&str, &str, Action); 16] = [
    ("*", "*", Action::Deny),
    ("StructuredOutput", "*", Action::Allow),
    ("read", "*", Action::Allow),
    ("read", "*.env", Action::Deny),
    ("read", "*.env.*", Action::Deny),
    ("read", "*.env.example", Action::Allow),
    ("grep", "*", Action::Allow),
    ("glob", "*", Action::Allow),
    ("list", "*", Action::Allow),
    ("lsp", "*", Action::Allow),
    ("bash", "git diff *", Action::Allow),
    ("bash", "git show *", Action::Allow),
    ("bash", "git log *", Action::Allow),
    ("bash", "git status *", Action::Allow),
    // These options write a file and run a program.
    ("bash", "git *--output*", Action::Deny),
    ("bash", "git *--ext-diff*", Action::Deny),
];

pub(crate) fn main(args: &ReviewArgs) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_stack_size(super::STACK_BYTES).enable_all().build()?;
    runtime.block_on(async {
        let directory = working_directory(None)?;
        let connection = Connection::local(Env::from_process(), &directory).await?;
        let read_only = || Some("read-only".to_owned());
        let sandbox = args.common.sandbox.clone().or_else(read_only);
        connection.configure(&Common { sandbox, ..args.common.clone() });
        let done = tokio::select! {
            done = tokio::time::timeout(DEADLINE, review(&connection, args)) => {
                done.unwrap_or_else(|_| bail!("the review did not end within {} minutes", DEADLINE.as_secs() / 60))
            }
            // The session ends with the connection.
            _ = tokio::signal::ctrl_c() => Ok(crate::connection::interrupted(2)),
        };
        connection.close().await;
        done
    })
}

async fn review(connection: &Connection, args: &ReviewArgs) -> anyhow::Result<ExitCode> {
    let engine = connection.engine().context("a review needs the engine of this process")?;
    let instance =
        engine.instance(engine.default_directory()).await.map_err(crate::connection::engine_error)?;
    let scope = scope(&instance, args.range.as_deref()).await?;
    let Some(scope) = scope else {
        style::note("there are no uncommitted changes to review; name a range, such as `main...HEAD`");
        return write(args, &Review::default());
    };
    let client = &connection.client;
    let model = named::model(client, args.model.as_deref()).await?;
    if model.is_none() {
        named::note_guess(client, None).await;
    }
    let session = SessionInput {
        title: Some(format!("Review of {}", args.range.as_deref().unwrap_or("uncommitted changes"))),
        permission: Some(
            RULES.map(|(permission, pattern, action)| Rule::new(permission, pattern, action)).into(),
        ),
        ..SessionInput::default()
    };
    let session = client.create_session(&session).await.map_err(client_error)?;
    let input = PromptInput {
        chosen: model.is_some().then_some(true),
        model,
        format: Some(OutputFormat::JsonSchema { schema: finding::schema(), retry_count: Some(RETRIES) }),
        parts: vec![PartInput::text(format!("{}\n\n{scope}", include_str!("review/prompt.txt").trim()))],
        ..PromptInput::default()
    };
    let answer = client.prompt(&session.id, &input).await.map_err(client_error)?;
    let (review, problems) = Review::read(&structured(answer)?, Path::new(&session.directory))?;
    for problem in problems {
        style::warning(&problem);
    }
    write(args, &review)
}

/// Returns the value that the model submitted.
///
/// # Errors
///
/// Fails with the reason if there is none: a review without an answer must not look like one without findings.
fn structured(answer: MessageWithParts) -> anyhow::Result<Value> {
    match answer.info {
        Message::Assistant(info) => match (info.structured, info.error) {
            (Some(value), None) => Ok(value),
            (_, Some(error)) => bail!("the review failed: {}", error.message()),
            (None, None) => bail!("the review failed: the model submitted no findings; try another model"),
        },
        Message::User(_) => bail!("the review failed: the model did not answer"),
    }
}

/// Returns the description of the changes to review, or `None` if nothing has changed.
async fn scope(instance: &Instance, range: Option<&str>) -> anyhow::Result<Option<String>> {
    if !instance.is_repository() {
        bail!("a review needs a git repository");
    }
    let Some(range) = range else {
        let changed = instance.vcs_status().await.map_err(crate::connection::engine_error)?;
        return Ok((!changed.is_empty()).then(|| {
            "Review the uncommitted work: `git diff HEAD`, and the new files of `git status --short`."
                .to_owned()
        }));
    };
    let (from, to) = range.split_once("...").or_else(|| range.split_once("..")).unwrap_or((range, ""));
    for name in [from, to].into_iter().filter(|name| !name.is_empty()) {
        if !instance.has_commit(name).await {
            bail!("there is no commit `{name}`; name a range, such as `main...HEAD`");
        }
    }
    let range = if range.contains("..") { range.to_owned() } else { format!("{range}...HEAD") };
    Ok(Some(format!("Review the changes of `git diff {range}`.")))
}

/// Writes the review to standard output or to the file of `--output`.
fn write(args: &ReviewArgs, review: &Review) -> anyhow::Result<ExitCode> {
    let text = match args.format {
        ReviewFormat::Text => format::text(review),
        ReviewFormat::Json => format!("{}\n", serde_json::to_string_pretty(&review)?),
        ReviewFormat::Sarif => format!("{}\n", serde_json::to_string_pretty(&format::sarif(review))?),
    };
    let code = match &args.output {
        Some(path) => {
            let path = working_directory(Some(path))?;
            let mut file = std::fs::File::create(&path)
                .with_context(|| format!("cannot create `{}`", path.display()))?;
            file.write_all(text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))?;
            ExitCode::SUCCESS
        }
        None => {
            let mut output = Output::new();
            let written = match args.format {
                ReviewFormat::Text => output.write(&text),
                ReviewFormat::Json | ReviewFormat::Sarif => output.write_json(&text),
            };
            exit_code(written.and_then(|()| output.finish()))?
        }
    };
    let is_found = args.fail_on.is_some_and(|least| review.findings.iter().any(|it| it.severity >= least));
    Ok(if is_found { ExitCode::from(FOUND) } else { code })
}
