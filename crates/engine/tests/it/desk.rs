//! An engine with a project, its own home directory and a scripted model.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_config::{Dirs, Env};
use codewright_engine::{Confinement, Engine, Instance, Options, Published, Subscription};
use codewright_proto::{
    Clock, Fact, MessageWithParts, PartBody, PartInput, PromptInput, Session, SessionInput, Signal, ToolState,
};
use codewright_scripted::{Script, Server};
use serde_json::{Value, json};

/// Longer than any test needs on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Desk {
    pub(crate) engine: Engine,
    pub(crate) instance: Arc<Instance>,
    pub(crate) server: Server,
    pub(crate) project: PathBuf,
    pub(crate) home: PathBuf,
    env: Env,
    _folder: tempfile::TempDir,
}

impl Desk {
    pub(crate) async fn new(script: Script) -> Self {
        Self::with(script, json!({})).await
    }

    /// A desk with additional configuration.
    pub(crate) async fn with(script: Script, more: Value) -> Self {
        Self::at(Clock::system(), script, more).await
    }

    /// A desk with its own clock.
    pub(crate) async fn at(clock: Clock, script: Script, more: Value) -> Self {
        Self::on(clock, script, more, &[]).await
    }

    /// A desk with additional environment variables.
    pub(crate) async fn with_env<const N: usize>(script: Script, env: [(&str, &str); N]) -> Self {
        Self::on(Clock::system(), script, json!({}), &env).await
    }

    async fn on(clock: Clock, script: Script, more: Value, variables: &[(&str, &str)]) -> Self {
        let server = Server::start(script).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        let mut config = json!({
            "model": "mock/plain-model",
            "provider": { "mock": {
                "npm": "@ai-sdk/openai-compatible",
                "options": { "baseURL": format!("{}/v1", server.url()), "apiKey": "sk-mock" },
                "models": { "plain-model": { "limit": { "context": 200_000, "output": 32_000 } } },
            }, "mockanth": {
                "npm": "@ai-sdk/anthropic",
                "options": { "baseURL": format!("{}/v1", server.url()), "apiKey": "sk-mock" },
                "models": { "claude-mock": { "limit": { "context": 200_000, "output": 32_000 } } },
            }, "mockgoogle": {
                "npm": "@ai-sdk/google",
                "options": { "baseURL": format!("{}/v1beta", server.url()), "apiKey": "sk-mock" },
                "models": { "gemini-3-mock": {
                    "reasoning": true,
                    "attachment": true,
                    "limit": { "context": 200_000, "output": 32_000 },
                } },
            }, "mockopenai": {
                "npm": "@ai-sdk/openai",
                "options": { "baseURL": format!("{}/v1", server.url()), "apiKey": "sk-mock" },
                "models": { "gpt-5-mock": {
                    "reasoning": true,
                    "attachment": true,
                    "limit": { "context": 200_000, "output": 32_000 },
                } },
            }, "mockbedrock": {
                "npm": "@ai-sdk/amazon-bedrock",
                "options": { "endpoint": server.url(), "accessKeyId": "AK", "secretAccessKey": "sk-mock" },
                "models": { "anthropic.claude-mock": {
                    "reasoning": true,
                    "limit": { "context": 200_000, "output": 32_000 },
                } },
            }, "mockcohere": {
                "npm": "@ai-sdk/cohere",
                "options": { "baseURL": format!("{}/v2", server.url()), "apiKey": "sk-mock" },
                "models": { "command-mock": {
                    "reasoning": true,
                    "limit": { "context": 200_000, "output": 32_000 },
                } },
            } },
        });
        lay(&mut config, &more);
        let pairs = [
            ("HOME".to_owned(), root.join("home").to_string_lossy().into_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("OPENCODE_CONFIG_CONTENT".to_owned(), config.to_string()),
            ("CODEWRIGHT_TRUST".to_owned(), "all".to_owned()),
            // Commands have no supervisor here, so they cannot be restricted.
            ("CODEWRIGHT_SANDBOX_OUTER".to_owned(), "1".to_owned()),
        ];
        let more = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = Env::from_pairs(pairs.into_iter().chain(more));
        let (engine, instance) = open(&project, &env, clock).await;
        Self { engine, instance, server, project, home: root.join("home"), env, _folder: folder }
    }

    /// Closes the engine and opens another one on the same data.
    pub(crate) async fn reopen(&mut self, clock: Clock) {
        self.engine.clone().close().await.unwrap();
        (self.engine, self.instance) = open(&self.project, &self.env, clock).await;
    }

    /// Returns the same desk after its directory is reopened.
    pub(crate) async fn again(mut self) -> Self {
        self.reopen(Clock::system()).await;
        self
    }

    pub(crate) async fn session(&self) -> Session {
        let input = SessionInput { title: Some("Test".to_owned()), ..SessionInput::default() };
        self.engine.sessions().create(&self.instance, input).await.unwrap()
    }

    pub(crate) async fn prompt(&self, session: &Session, text: &str) -> MessageWithParts {
        let prompt = self.engine.sessions().prompt(&session.id, prompt(text));
        tokio::time::timeout(DEADLINE, prompt).await.expect("the turn ends").unwrap()
    }

    pub(crate) async fn transcript(&self, session: &Session) -> Vec<MessageWithParts> {
        self.engine.sessions().messages(&session.id, None).await.unwrap()
    }

    /// Checks that every sent request follows the protocol.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.server.problems(), Vec::<String>::new());
    }
}

async fn open(project: &Path, env: &Env, clock: Clock) -> (Engine, Arc<Instance>) {
    let (env, dirs) = (env.clone(), Dirs::new(env).unwrap());
    let options = Options {
        directory: project.to_owned(),
        env,
        dirs,
        version: "0.0.0-test",
        clock,
        confinement: Confinement::Group,
    };
    let engine = Engine::open(options).await.unwrap();
    let instance = engine.instance(project).await.unwrap();
    (engine, instance)
}

/// Merges `over` into `under`; objects are merged recursively.
fn lay(under: &mut Value, over: &Value) {
    match over {
        Value::Object(over) => over.iter().for_each(|(key, value)| lay(&mut under[key], value)),
        _ => *under = over.clone(),
    }
}

pub(crate) fn prompt(text: &str) -> PromptInput {
    PromptInput { parts: vec![PartInput::text(text)], ..PromptInput::default() }
}

/// Returns the text of a message.
pub(crate) fn text(message: &MessageWithParts) -> String {
    let texts = message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(text) => Some(text.text.to_string()),
        _ => None,
    });
    texts.collect()
}

/// Returns the states of all calls, oldest first.
pub(crate) fn calls(transcript: &[MessageWithParts]) -> Vec<(String, ToolState)> {
    let parts = transcript.iter().flat_map(|message| &message.parts);
    let calls = parts.filter_map(|part| match &part.body {
        PartBody::Tool(call) => Some((call.tool.clone(), call.state.clone())),
        _ => None,
    });
    calls.collect()
}

/// Waits for the first item that `wanted` accepts.
pub(crate) async fn wait_for<T>(
    feed: &mut Subscription,
    mut wanted: impl FnMut(&Published) -> Option<T>,
) -> T {
    let search = async {
        loop {
            let published = feed.next().await.unwrap();
            if let Some(found) = wanted(&published) {
                return found;
            }
        }
    };
    tokio::time::timeout(DEADLINE, search).await.expect("it happens")
}

/// Waits for a delta.
pub(crate) async fn wait_for_delta(feed: &mut Subscription) {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(Signal::PartDelta { .. }) => Some(()),
        _ => None,
    })
    .await;
}
