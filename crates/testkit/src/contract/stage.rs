//! Runs the program with a scripted model and a project like the recorded one.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use codewright_scripted::Script;
use serde_json::{Map, Value, json};

use super::act;
use super::compare::compare;
use super::http::Address;
use super::recording::{Recording, Reply};
use super::script::script;
use crate::{BlockingServer, Project, Run};

/// The longest wait for an event or an answer, longer than any case takes on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(100);
/// A case is over when no event arrived for this long.
const QUIET: Duration = Duration::from_millis(700);

/// How long a quiet case may take to become alike to its recording.
const LATE_EVENTS: Duration = Duration::from_secs(20);
/// How long an alike case may take to become identical.
const LATE_VALUES: Duration = Duration::from_secs(3);

const UTIL: &str = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n";
const MAIN: &str = "import sys\nfrom util import add\n\n\ndef main():\n    print(\"sum\", add(1, 2))\n    return 0\n\n\n\
                    if __name__ == \"__main__\":\n    sys.exit(main())\n";

/// More files of the project in the case `doom-loop-same-step`.
const MORE_TEXTS: [&str; 6] =
    ["AGENTS.md", "CLAUDE.md", "docs/guide.md", "pkg/AGENTS.md", "pkg/inner/CLAUDE.md", "t/sub/deep/x.md"];

/// The events and messages of a replayed case.
pub(super) struct Played {
    pub(super) events: Vec<Value>,
    pub(super) messages: Vec<Value>,
    /// Paths and the names that the recordings have for them.
    pub(super) paths: Vec<(String, &'static str)>,
}

/// A running program with one session.
pub(super) struct Stage {
    pub(super) address: Address,
    pub(super) session: String,
    received: Arc<Received>,
    replies: Mutex<VecDeque<Reply>>,
    /// The number of events that were checked for a request to reply to.
    answered: Mutex<usize>,
    by_old_route: bool,
}

#[derive(Default)]
struct Received {
    events: Mutex<Vec<Value>>,
    more: Condvar,
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, Vec<Value>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replays a case.
pub(super) fn play(program: &Path, recording: &Recording) -> Result<Played> {
    let project = Project::git()?;
    let work = project.directory().parent().context("a project has no parent")?.to_owned();
    furnish(&project, &work)?;
    if recording.name == "doom-loop-same-step" {
        MORE_TEXTS.iter().try_for_each(|name| project.write(name, "text\n").map(drop))?;
    }
    let paths = vec![
        (project.directory().display().to_string(), "$PROJECT"),
        (project.home().display().to_string(), "$HOME"),
        (work.display().to_string(), "$WORK"),
    ];
    let text =
        paths.iter().fold(script(recording).to_string(), |text, (path, name)| text.replace(name, path));
    let model = BlockingServer::start(Script::from_json(&text)?)?;
    project.write_config(&config(&model.url(), recording))?;
    let server = Run::new(program, &project).args(["serve", "--port", "0"]).deadline(DEADLINE);
    let mut server = server.start()?;
    let line = server.line_that(|line| line.contains("http://"))?;
    let url = line.split("http://").nth(1).context("no address")?;
    let address = Address(url.trim().trim_end_matches('/').to_owned());

    let received = Arc::new(Received::default());
    let (to, events) = (received.clone(), address.events()?);
    thread::spawn(move || {
        for event in events {
            to.lock().push(event);
            to.more.notify_all();
        }
    });
    let (status, created) = address.call("POST", "/session", Some(&recording.session_input()?))?;
    let session = created["id"].as_str().with_context(|| format!("no session: {status} {created}"))?;
    let stage = Stage {
        session: session.to_owned(),
        received,
        replies: Mutex::new(recording.replies()),
        answered: Mutex::default(),
        by_old_route: recording.name == "permission-edit-deprecated-route",
        address: address.clone(),
    };
    act::act(&stage, recording)?;
    let since = Instant::now();
    loop {
        stage.settle()?;
        let played = Played { paths: paths.clone(), ..stage.result(recording)? };
        let outcome = compare(recording, &played);
        // A busy machine can be quiet for a while before the last events of a case.
        let patience = if outcome.is_alike() { LATE_VALUES } else { LATE_EVENTS };
        if outcome.is_identical() || since.elapsed() > patience {
            return Ok(played);
        }
    }
}

impl Stage {
    /// Returns the events so far and the messages of the session whose messages were recorded.
    fn result(&self, recording: &Recording) -> Result<Played> {
        let events = self.received.lock().clone();
        let created = events.iter().filter(|event| event["type"] == "session.created");
        let ids: Vec<_> = created.filter_map(|event| event["properties"]["sessionID"].as_str()).collect();
        let session = ids.get(recording.message_session()).copied().unwrap_or(&self.session);
        let (_, messages) = self.address.call("GET", &format!("/session/{session}/message"), None)?;
        let messages = serde_json::from_value(messages).unwrap_or_default();
        Ok(Played { events, messages, paths: Vec::new() })
    }

    /// Returns the path of a route of the session.
    pub(super) fn route(&self, rest: &str) -> String {
        format!("/session/{}{rest}", self.session)
    }

    /// Sends a body to a route and replies to permission requests and questions until the answer arrives.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        let (address, to, sent) = (self.address.clone(), path.to_owned(), body.clone());
        let call = thread::spawn(move || address.call("POST", &to, Some(&sent)));
        let ends = Instant::now() + DEADLINE;
        while !call.is_finished() {
            if Instant::now() > ends {
                bail!("POST {path} does not answer");
            }
            self.answer()?;
        }
        call.join().map_err(|_| anyhow::anyhow!("a call panicked"))?
    }

    /// Waits for an event that fits, and replies to requests in the meantime.
    pub(super) fn until(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<()> {
        self.until_all(what, |events| events.iter().any(&fits))
    }

    /// Waits until `fits` holds for all events so far, and replies to requests in the meantime.
    pub(super) fn until_all(&self, what: &str, fits: impl Fn(&[Value]) -> bool) -> Result<()> {
        let ends = Instant::now() + DEADLINE;
        while !fits(&self.received.lock()) {
            if Instant::now() > ends {
                bail!("{what} did not arrive within {} s", DEADLINE.as_secs());
            }
            self.answer()?;
        }
        Ok(())
    }

    /// Counts the events that fit.
    pub(super) fn count(&self, fits: impl Fn(&Value) -> bool) -> usize {
        self.received.lock().iter().filter(|event| fits(event)).count()
    }

    /// Returns the ids of the prompts in the session, oldest first.
    pub(super) fn prompts(&self) -> Result<Vec<String>> {
        let (_, messages) = self.address.call("GET", &self.route("/message"), None)?;
        let messages = messages.as_array().cloned().unwrap_or_default();
        let prompts = messages.iter().filter(|message| message["info"]["role"] == "user");
        Ok(prompts.filter_map(|message| Some(message["info"]["id"].as_str()?.to_owned())).collect())
    }

    /// Waits until no more events arrive.
    pub(super) fn settle(&self) -> Result<()> {
        let ends = Instant::now() + DEADLINE;
        loop {
            let before = self.received.lock().len();
            let quiet = Instant::now();
            while quiet.elapsed() < QUIET {
                self.answer()?;
            }
            if self.received.lock().len() == before || Instant::now() > ends {
                return Ok(());
            }
        }
    }

    /// Waits a moment, then sends the recorded replies to new permission requests and questions.
    fn answer(&self) -> Result<()> {
        let new: Vec<Value> = {
            let events = self.received.lock();
            let pause = Duration::from_millis(10);
            let (events, _) =
                self.received.more.wait_timeout(events, pause).unwrap_or_else(PoisonError::into_inner);
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = events.get(*answered..).unwrap_or_default().to_vec();
            *answered = events.len();
            fresh
        };
        for event in new {
            let kind = event["type"].as_str().unwrap_or_default();
            let Some(family) = kind.strip_suffix(".asked") else { continue };
            let Some(reply) = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else {
                continue;
            };
            let id = event["properties"]["id"].as_str().unwrap_or_default();
            let (path, body) = match reply.body {
                Some(body) if self.by_old_route => {
                    (self.route(&format!("/permissions/{id}")), json!({"response": body["reply"]}))
                }
                Some(body) => (format!("/{family}/{id}/reply"), body),
                None => (format!("/{family}/{id}/reject"), json!({})),
            };
            let (status, answer) = self.address.call("POST", &path, Some(&body))?;
            if status != 200 {
                bail!("POST {path} answered {status} {answer}");
            }
        }
        Ok(())
    }
}

fn furnish(project: &Project, work: &Path) -> Result<()> {
    project.write("README.md", "# Demo project\n")?;
    project.write("src/util.py", UTIL)?;
    project.write("src/main.py", MAIN)?;
    project.write(".gitignore", "*.log\n.env\n")?;
    project.run_git(&["add", "--all"])?;
    project.run_git(&["commit", "--quiet", "--amend", "--message=First"])?;
    project.write(".env", "SECRET=1\n")?;
    let outside: PathBuf = work.join("outside");
    fs::create_dir_all(&outside)?;
    fs::write(outside.join("x.txt"), "outside\n")?;
    Ok(())
}

/// Returns the configuration: the recorded providers with the models that the case uses.
fn config(url: &str, recording: &Recording) -> Value {
    let mut providers = Map::new();
    let kinds = [
        ("mockchat", "@ai-sdk/openai-compatible"),
        ("mockresp", "@ai-sdk/openai"),
        ("mockanth", "@ai-sdk/anthropic"),
    ];
    for (name, npm) in kinds {
        let mut models = Map::new();
        for session in recording.sessions() {
            let id = session["id"].as_str().unwrap_or_default();
            for (info, _) in recording.transcript(id) {
                let model = if info["model"].is_object() { &info["model"] } else { &info };
                if model["providerID"] == name
                    && let Some(id) = model["modelID"].as_str()
                {
                    models.insert(id.to_owned(), described(id));
                }
            }
        }
        if name == "mockchat" {
            models.insert("plain-model".to_owned(), described("plain-model"));
        }
        let options = json!({"apiKey": "sk-mock", "baseURL": format!("{url}/v1")});
        let provider = json!({"name": name, "npm": npm, "options": options, "models": models});
        providers.insert(name.to_owned(), provider);
    }
    json!({"model": "mockchat/plain-model", "share": "disabled", "autoupdate": false, "provider": providers})
}

fn described(id: &str) -> Value {
    let context = if id.contains("small") { 20_000 } else { 200_000 };
    let output = if id.contains("small") { 4_000 } else { 32_000 };
    json!({
        "name": id, "attachment": true, "temperature": true, "tool_call": true,
        "limit": {"context": context, "output": output},
        "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
    })
}
