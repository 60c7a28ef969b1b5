//! The test bench: an engine in a temporary project, and helpers for requests to its server.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use codewright_client::{Client, Events};
use codewright_config::{Dirs, Env};
use codewright_engine::Engine;
use codewright_proto::{Clock, Event, Fact, Notice, PartInput, PromptInput};
use codewright_server::{Options, router, serve};
use codewright_testkit::{Project, Script, Server};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Long enough for a machine under load.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Bench {
    pub(crate) project: Project,
    pub(crate) model: Server,
    pub(crate) engine: Engine,
}

/// A server on a socket. It stops when this is dropped.
pub(crate) struct Listening {
    pub(crate) url: String,
    pub(crate) cancel: CancellationToken,
    pub(crate) task: JoinSet<std::io::Result<()>>,
}

impl Bench {
    pub(crate) async fn new(script: Script) -> Self {
        Self::configured(script, |_| {}).await
    }

    /// Returns a bench in a git repository.
    pub(crate) async fn git() -> Self {
        Self::git_with(Script::new()).await
    }

    /// Returns a bench in a git repository with a scripted model.
    pub(crate) async fn git_with(script: Script) -> Self {
        Self::in_project(Project::git().unwrap(), script, |_| {}).await
    }

    pub(crate) async fn configured(script: Script, change: impl FnOnce(&mut Value)) -> Self {
        Self::in_project(Project::plain().unwrap(), script, change).await
    }

    async fn in_project(project: Project, script: Script, change: impl FnOnce(&mut Value)) -> Self {
        Self::in_environment(project, script, change, &[]).await
    }

    /// Returns a bench with additional environment variables.
    pub(crate) async fn in_environment(
        project: Project,
        script: Script,
        change: impl FnOnce(&mut Value),
        more: &[(&str, &str)],
    ) -> Self {
        let model = Server::start(script).await.unwrap();
        let mut config = Project::config(&model.url());
        change(&mut config);
        project.write_config(&config).unwrap();
        // The project's own configuration, which git ignores.
        project.write("opencode.json", "{}").unwrap();
        if project.path(".git").is_dir() {
            project.write(".git/info/exclude", "/opencode.json\n").unwrap();
        }
        let variables = project.environment();
        let variables =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.into_string().unwrap()));
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = Env::from_pairs(variables.chain(more));
        let options = codewright_engine::Options {
            confinement: codewright_engine::Confinement::Group,
            directory: project.directory().to_owned(),
            dirs: Dirs::new(&env).unwrap(),
            env,
            version: "1.18.33",
            clock: Clock::system(),
        };
        let engine = Engine::open(options).await.unwrap();
        Self { project, model, engine }
    }

    pub(crate) fn router(&self, options: Options) -> Router {
        router(self.engine.clone(), options)
    }

    pub(crate) fn client(&self) -> Client {
        Client::in_process(self.router(quick()))
    }

    pub(crate) async fn listen(&self, options: Options) -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cancel = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(serve(listener, self.router(options), cancel.clone()));
        Listening { url, cancel, task }
    }
}

/// Options with short intervals.
pub(crate) fn quick() -> Options {
    Options { heartbeat: Duration::from_millis(50), ..Options::default() }
}

pub(crate) fn request(method: &str, path: &str) -> ::http::request::Builder {
    Request::builder().method(method).uri(path).header("host", "127.0.0.1:4096")
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Response<Body> {
    tower::ServiceExt::oneshot(router.clone(), request).await.unwrap()
}

/// Sends a request with a JSON body, or without one if it is empty. Returns the status and the JSON of the reply.
pub(crate) async fn ask(router: &Router, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut message = request(method, path);
    if !body.is_empty() {
        message = message.header("content-type", "application/json");
    }
    let (status, json) = read(send(router, message.body(Body::from(body.to_owned())).unwrap()).await).await;
    (status.as_u16(), json)
}

/// Returns the status and the JSON of a reply; null for an empty one.
pub(crate) async fn read(response: Response<Body>) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() })
}

pub(crate) fn says(text: &str) -> PromptInput {
    PromptInput { parts: vec![PartInput::text(text)], ..PromptInput::default() }
}

/// Reads events until one matches.
pub(crate) async fn until(events: &mut Events, mut matches: impl FnMut(&Notice) -> bool) -> Notice {
    let found = async {
        loop {
            let notice = events.next().await.unwrap().expect("the stream goes on");
            if matches(&notice) {
                return notice;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap()
}

pub(crate) fn event(notice: &Notice) -> Option<&Event> {
    match &notice.fact {
        Fact::Event(event) => Some(event),
        Fact::Signal(_) => None,
    }
}
