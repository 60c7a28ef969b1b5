//! `bug`: writes a report for the developers into a file. Nothing is sent.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use codewright_config::Env;
use codewright_engine::{Engine, Level, LogFilter, hide_credentials};
use codewright_proto::Clock;

use super::doctor;
use crate::cli::BugArgs;
use crate::connection::working_directory;

/// The lines of the log in a report.
const LINES: usize = 200;

pub(crate) fn main(args: &BugArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let report = runtime.block_on(async {
        let env = Env::from_process();
        let opened = doctor::open(&env).await;
        let report = report(&env, opened.as_ref()).await;
        if let Ok(engine) = opened {
            engine.close().await?;
        }
        anyhow::Ok(report)
    });
    runtime.shutdown_background();
    let name = format!("codewright-bug-{}.md", Clock::system().now_ms() / 1000);
    let path = working_directory(Some(args.output.as_deref().unwrap_or(&PathBuf::from(name))))?;
    let mut options = codewright_workspace::private_file();
    let file = options.create_new(true).write(true).open(&path);
    let mut file = file.with_context(|| format!("cannot create `{}`", path.display()))?;
    file.write_all(report?.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))?;
    let text = format!(
        "Wrote {}.\nKeys are removed; read it before you share it. Then describe what you did and expected at the top, and\n\
         attach the file to a new issue in the repository that you installed Codewright from. Report security problems in\n\
         private, as SECURITY.md describes.\n",
        path.display()
    );
    Ok(crate::print(&crate::clean::clean(&text)))
}

async fn report(env: &Env, opened: Result<&Engine, &String>) -> String {
    let findings = doctor::examine(env, opened).await;
    let mut text =
        String::from("# Report of a problem\n\nWhat I did:\n\nWhat I expected:\n\nWhat happened:\n\n");
    text.push_str(&format!("## codewright doctor\n\n```\n{}```\n\n## Log\n\n```\n", doctor::text(&findings)));
    match opened {
        Ok(engine) => text.push_str(&log(engine).await),
        Err(_) => text.push_str("the log cannot be read without the database\n"),
    }
    text.push_str("```\n");
    hide_credentials(&text)
}

/// The newest lines of the log, without the credentials that this program knows.
async fn log(engine: &Engine) -> String {
    let instance = engine.instance(engine.default_directory()).await.ok();
    let config = instance.as_ref().map_or(serde_json::Value::Null, |instance| instance.config_json());
    let inserted: Vec<&str> = instance.iter().flat_map(|instance| instance.inserted_secrets()).collect();
    match engine.log().tail(LogFilter { limit: LINES, least: Level::Debug }, &config, &inserted).await {
        Ok(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        Err(error) => format!("{error}\n"),
    }
}
