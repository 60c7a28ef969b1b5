//! `review`: reviews changes and prints the findings as text, JSON or SARIF.
//!
//! The engine writes the prompt and parses the answer, for this command and for `/review` in the clients.

mod format;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_config::Env;
use codewright_proto::{PromptInput, Review, Severity};

use super::run::named;
use crate::cli::{Common, ReviewArgs, ReviewFormat};
use crate::connection::{Connection, client_error, engine_error, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// The longest review.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// The exit code if a finding is at least as severe as `--fail-on`.
const FOUND: u8 = 3;

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
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    let request = instance.review_request(args.range.as_deref()).await.map_err(engine_error)?;
    let Some(request) = request else {
        style::note("there are no uncommitted changes to review; name a range, such as `main...HEAD`");
        return write(args, &Review::default());
    };
    let client = &connection.client;
    let model = named::model(client, args.model.as_deref()).await?;
    if model.is_none() {
        named::note_guess(client, None).await;
    }
    let session = client.create_session(&request.session).await.map_err(client_error)?;
    let chosen = model.is_some().then_some(true);
    let input = PromptInput { chosen, model, ..request.prompt };
    client.prompt(&session.id, &input).await.map_err(client_error)?;
    let review = client.review(&session.id).await.map_err(client_error)?;
    for problem in &review.problems {
        style::warning(&crate::clean::clean_line(problem));
    }
    write(args, &review)
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
    let least = args.fail_on.map(Severity::from);
    let is_found = least.is_some_and(|least| review.findings.iter().any(|it| it.severity >= least));
    Ok(if is_found { ExitCode::from(FOUND) } else { code })
}
