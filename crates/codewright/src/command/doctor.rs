//! `doctor`: checks what a session needs, one line each with the advice.
//!
//! The checks run at the same time, each with a deadline, so that a server that does not answer delays nothing. No
//! line contains a secret: the checks report names of variables and addresses without credentials.

mod machine;
mod service;

use std::process::ExitCode;
use std::time::Duration;

use codewright_config::Env;
use codewright_engine::Engine;
use serde_json::{Value, json};

use crate::cli::DoctorArgs;
use crate::connection::{VERSION, open_engine, working_directory};
use crate::output::{Output, exit_code};

/// The deadline of one check; all of them together and the start of the program take less than two seconds.
const DEADLINE: Duration = Duration::from_millis(1300);

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    name: &'static str,
    status: Status,
    detail: String,
    /// What to do, unless everything is well.
    advice: Option<String>,
}

/// How well a part works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    /// Something is missing that some users do not need.
    Warning,
    /// Prompts fail, or fail soon.
    Failed,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Finding {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, detail: detail.into(), advice: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Warning, detail: detail.into(), advice: Some(advice.into()) }
    }

    fn failed(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Failed, detail: detail.into(), advice: Some(advice.into()) }
    }
}

pub(crate) fn main(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let findings = runtime.block_on(async {
        let env = Env::from_process();
        let opened = open(&env).await;
        let findings = examine(&env, opened.as_ref()).await;
        if let Ok(engine) = opened {
            engine.close().await?;
        }
        anyhow::Ok(findings)
    });
    // A check that missed its deadline may still block a thread.
    runtime.shutdown_background();
    let findings = findings?;
    let mut output = Output::new();
    let written =
        if args.json { output.write_value(&value(&findings)) } else { output.write(&text(&findings)) };
    let written = written.and_then(|()| output.finish());
    let code = exit_code(written)?;
    let is_broken = findings.iter().any(|finding| finding.status == Status::Failed);
    Ok(if is_broken { ExitCode::FAILURE } else { code })
}

/// Opens the engine in this directory. The error is one of the findings.
pub(crate) async fn open(env: &Env) -> Result<Engine, String> {
    let opened = async { open_engine(env.clone(), &working_directory(None)?).await };
    opened.await.map_err(|error| format!("{error:#}"))
}

/// Runs all checks.
pub(crate) async fn examine(env: &Env, opened: Result<&Engine, &String>) -> Vec<Finding> {
    let mut findings = vec![version(std::env::consts::OS)];
    let machine = async { machine::examine(env) };
    match opened {
        Ok(engine) => {
            let (service, machine) = tokio::join!(service::examine(env, engine), machine);
            findings.extend(service);
            findings.extend(machine);
        }
        Err(error) => {
            // The lines after the first one are advice.
            let general = "correct what the message names; `codewright debug paths` lists the directories";
            let (detail, advice) = error.split_once('\n').unwrap_or((error, general));
            findings.push(Finding::failed("database", detail, advice));
            findings.extend(machine.await);
        }
    }
    findings
}

fn version(system: &str) -> Finding {
    let detail = format!("codewright {VERSION} on {system} {}", std::env::consts::ARCH);
    match system {
        "linux" => Finding::ok("version", detail),
        _ => {
            Finding::warning("version", detail, "the program was never tested on this system; docs/parity.md")
        }
    }
}

/// One line for each finding: a mark, the name and the detail, and the advice below it.
pub(crate) fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { name, status, detail, advice } in findings {
        let mark = match status {
            Status::Ok => "ok  ",
            Status::Warning => "warn",
            Status::Failed => "FAIL",
        };
        let advice = advice.as_deref().map(|advice| format!("; {advice}")).unwrap_or_default();
        let line = crate::clean::clean_line(&format!("{mark}  {name:<12} {detail}{advice}"));
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn value(findings: &[Finding]) -> Value {
    let checks = findings.iter().map(|Finding { name, status, detail, advice }| {
        json!({ "name": name, "status": status.name(), "detail": detail, "advice": advice })
    });
    json!({ "version": VERSION, "checks": checks.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_tests_is_named() {
        assert_eq!(version("linux").status, Status::Ok);
        let other = version("macos");
        assert_eq!(other.status, Status::Warning);
        assert!(other.detail.contains("on macos "), "{}", other.detail);
    }

    #[test]
    fn a_finding_is_one_line_with_its_advice() {
        let findings = [
            Finding::ok("git", "/usr/bin/git"),
            Finding::failed("key", "no model provider\nwas found", "run `codewright providers login`"),
        ];
        let expected = "ok    git          /usr/bin/git\n\
                        FAIL  key          no model provider was found; run `codewright providers login`\n";
        assert_eq!(text(&findings), expected);
    }
}
