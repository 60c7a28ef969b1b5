//! `demo`: fixes a bug in a small project, without an API key or a network.
//!
//! The project is created in a temporary directory. A scripted model, which a local server provides, works through the
//! ordinary loop, protocol, tools, permission rules and store until the project's test passes. The user's configuration,
//! data and keys are not used.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use codewright_config::{Env, env};
use codewright_scripted::{Request, Script, Server, Steps, Turn, Usage};
use codewright_workspace::git::Git;
use serde_json::json;

use super::run;
use crate::cli::{DemoArgs, Format, RunArgs};
use crate::connection::Connection;

const GIT_DEADLINE: Duration = Duration::from_secs(10);
const PROMPT: &str = "fix the failing test";
const FILES: [(&str, &str); 3] = [
    ("README.md", "# total\n\n`total.sh` adds up the numbers it is given. Run the test with `sh test.sh`.\n"),
    (
        "total.sh",
        "# Prints the sum of its arguments.\ntotal=0\nfor number in \"$@\"; do\n  total=$((total - number))\ndone\necho \"$total\"\n",
    ),
    (
        "test.sh",
        "# Checks total.sh; the exit code is 0 when every case holds.\nfailed=0\n\ncheck() {\n  expected=$1\n  shift\n  found=$(sh total.sh \"$@\")\n  \
         if [ \"$found\" = \"$expected\" ]; then\n    echo \"ok: total of $* is $expected\"\n  else\n    echo \"FAILED: total of $* is $found, \
         expected $expected\"\n    failed=1\n  fi\n}\n\ncheck 0\ncheck 5 2 3\ncheck 42 20 20 2\nexit $failed\n",
    ),
];

pub(crate) fn main(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(demo(args))
}

async fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::Builder::new()
        .prefix("codewright-demo-")
        .tempdir()
        .context("cannot create the demo project")?;
    let project = folder.path().join("total");
    make_project(&project).await?;
    let server = Server::start(script(&project)).await.context("cannot start the scripted model")?;
    if args.format == Format::Default {
        print_note(&format!(
            "This is a demonstration. The model is a script on this machine: it needs no key and no network, and its \
             answers are written in advance.\nEverything else is the real program, working on a small project in {}\n\n$ codewright \
             run \"{PROMPT}\"",
            project.display()
        ));
    }
    let connection = Connection::local(environment(folder.path(), &server.url()), &project).await?;
    let run_args = RunArgs { format: args.format, message: vec![PROMPT.to_owned()], ..RunArgs::default() };
    let code = run::turn_and_close(connection, &run_args, PROMPT.to_owned()).await;
    let problems = server.problems();
    server.stop().await;
    if args.keep {
        let kept = folder.keep();
        print_note(&format!("The project is kept in {}", kept.join("total").display()));
    }
    anyhow::ensure!(problems.is_empty(), "the scripted model refused a request: {}", problems.join("; "));
    code
}

/// Prints a note about the demonstration on standard error.
fn print_note(text: &str) {
    use std::io::Write as _;
    // If standard error is closed, there is no other way to report this.
    drop(writeln!(std::io::stderr(), "{text}\n"));
}

async fn make_project(project: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(project).context("cannot create the project's directory")?;
    for (name, text) in FILES {
        std::fs::write(project.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    // Without git the project is a plain directory, which works too.
    for arguments in
        [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "--message", "Add total"]]
    {
        if !git(project, arguments).await {
            break;
        }
    }
    Ok(())
}

async fn git(project: &Path, arguments: &[&str]) -> bool {
    let identity = ["-c", "user.name=Demo", "-c", "user.email=demo@example.invalid"];
    let git = Git::new(Env::from_process().get(env::PATH), project, project);
    let arguments: Vec<&str> = identity.into_iter().chain(arguments.iter().copied()).collect();
    git.run_in_own(project, &arguments, GIT_DEADLINE).await.is_ok()
}

/// A separate environment, so that the demonstration neither reads nor writes the user's files.
fn environment(folder: &Path, url: &str) -> Env {
    let own = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let config = json!({
        "model": "scripted/demo",
        "provider": { "scripted": {
            "name": "Scripted model",
            "npm": "@ai-sdk/openai-compatible",
            "options": { "baseURL": format!("{url}/v1"), "apiKey": "none" },
            "models": { "demo": { "name": "demo", "limit": { "context": 32000, "output": 4000 } } },
        } },
        // Commands need permission, and only the test has it.
        "permission": { "bash": { "*": "ask", "sh test.sh": "allow" } },
    });
    let path = Env::from_process().get("PATH").unwrap_or_default().to_owned();
    Env::from_pairs([
        ("PATH", path),
        ("HOME", own("home")),
        ("XDG_CONFIG_HOME", own("config")),
        ("XDG_DATA_HOME", own("data")),
        ("XDG_STATE_HOME", own("state")),
        ("XDG_CACHE_HOME", own("cache")),
        // Without git nothing marks the project's root, and the parent directories would be read too.
        (env::DISABLE_PROJECT_CONFIG, "1".to_owned()),
        (env::CONFIG_CONTENT, config.to_string()),
    ])
}

/// The model's answers. The last one depends on the test's result.
fn script(project: &Path) -> Script {
    let path = |name: &str| project.join(name).to_string_lossy().into_owned();
    let (total, test): (String, String) = (path("total.sh"), path("test.sh"));
    let usage = |input, output| Usage { input, output, ..Usage::default() };
    Script::new()
        .title("Fix the failing test of total.sh")
        .turn(
            Turn::text("I'll look at the project first.\n")
                .tool("glob", json!({ "pattern": "**/*" }))
                .tool("read", json!({ "filePath": test }))
                .usage(usage(1200, 60)),
        )
        .turn(
            Turn::text("Now the test itself, and the script it checks.\n")
                .tool("bash", json!({ "command": "sh test.sh" }))
                .tool("read", json!({ "filePath": total.clone() }))
                .usage(usage(1900, 70)),
        )
        .turn(
            Turn::text("The loop subtracts where it should add.\n")
                .tool(
                    "edit",
                    json!({
                        "filePath": total,
                        "oldString": "total=$((total - number))",
                        "newString": "total=$((total + number))",
                    }),
                )
                .usage(usage(2300, 90)),
        )
        .turn(
            Turn::text("Let me see whether that was all.\n")
                .tool("bash", json!({ "command": "sh test.sh" }))
                .usage(usage(2500, 40)),
        )
        .turn(Turn::respond(conclusion))
}

fn conclusion(request: &Request) -> Steps {
    let passed = request.last_result().is_some_and(|result| {
        result.text.contains("ok: total of 20 20 2 is 42") && !result.text.contains("FAILED")
    });
    let text = if passed {
        "The test passes now. `total.sh:4` subtracted each number instead of adding it; I changed the operator and \
         nothing else, and ran `sh test.sh` before and after.\n"
    } else {
        "The test still fails; its last output is above.\n"
    };
    Turn::text(text).usage(Usage { input: 2700, output: 60, ..Usage::default() })
}
