//! `bug`: writes a report for the developers into a file. Nothing is sent.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use codewright_config::Env;
use codewright_engine::{Engine, Instance, Level, LogFilter, hide_credentials};
use codewright_proto::{BugReport, Clock};
use codewright_server::{Reporter, Reporting};
use serde_json::Value;

use super::doctor::{self, Finding};
use crate::cli::BugArgs;
use crate::connection::working_directory;

/// The lines of the log in a report.
const LINES: usize = 200;
/// What to do with the file.
const ADVICE: &str = "\
Keys are removed; read it before you share it. Then describe what you did and expected at the top, and
attach the file to a new issue in the repository that you installed Codewright from. Report security problems in
private, as SECURITY.md describes.";

pub(crate) fn main(args: &BugArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let report = runtime.block_on(async {
        let env = Env::from_process();
        let opened = doctor::open(&env).await;
        let findings = doctor::examine(&env, opened.as_ref()).await;
        let log = match &opened {
            Ok(engine) => {
                let instance = engine.instance(engine.default_directory()).await.ok();
                log(engine, instance.as_deref(), &[]).await
            }
            Err(_) => "the log cannot be read without the database\n".to_owned(),
        };
        let report = report(&findings, &log);
        if let Ok(engine) = opened {
            engine.close().await?;
        }
        anyhow::Ok(report)
    });
    runtime.shutdown_background();
    let path = working_directory(Some(args.output.as_deref().unwrap_or(&PathBuf::from(file_name()))))?;
    let mut options = codewright_workspace::private_file();
    let file = options.create_new(true).write(true).open(&path);
    let mut file = file.with_context(|| format!("cannot create `{}`", path.display()))?;
    file.write_all(report?.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))?;
    let text = format!("Wrote {}.\n{ADVICE}\n", path.display());
    Ok(crate::print(&crate::clean::clean(&text)))
}

/// Returns what writes the reports of a server and of the terminal client.
pub(crate) fn reporter(env: Env) -> Reporter {
    Arc::new(move |engine: Engine, instance: Arc<Instance>, secrets: Vec<String>| -> Reporting {
        let env = env.clone();
        Box::pin(async move {
            let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let findings = doctor::examine(&env, Ok(&engine)).await;
            let log = log(&engine, Some(&instance), &secrets).await;
            BugReport { name: file_name(), text: report(&findings, &log), advice: ADVICE.to_owned() }
        })
    })
}

fn file_name() -> String {
    format!("codewright-bug-{}.md", Clock::system().now_ms() / 1000)
}

fn report(findings: &[Finding], log: &str) -> String {
    let mut text =
        String::from("# Report of a problem\n\nWhat I did:\n\nWhat I expected:\n\nWhat happened:\n\n");
    text.push_str(&format!("## codewright doctor\n\n```\n{}```\n\n## Log\n\n```\n", doctor::text(findings)));
    text.push_str(log);
    text.push_str("```\n");
    hide_credentials(&text)
}

/// The newest lines of the log, without the credentials that this program knows.
async fn log(engine: &Engine, instance: Option<&Instance>, secrets: &[&str]) -> String {
    let config = instance.map_or(Value::Null, Instance::config_json);
    let inserted = instance.into_iter().flat_map(Instance::inserted_secrets);
    let secrets: Vec<&str> = inserted.chain(secrets.iter().copied()).collect();
    match engine.log().tail(LogFilter { limit: LINES, least: Level::Debug }, &config, &secrets).await {
        Ok(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        Err(error) => format!("{error}\n"),
    }
}
