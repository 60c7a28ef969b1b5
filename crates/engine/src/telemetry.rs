//! What is told to a collector, and the way to it.
//!
//! Told are the requests of clients, turns, their steps, the requests to models and the calls of
//! tools: names, numbers and ids of our own. Nothing that a user, a model, a file or a command said
//! is among them.

use std::path::Path;
use std::pin::Pin;

use codewright_config::{Dirs, Env, LoadInput, env};
use codewright_llm::{Client, Error as Refusal, Model};
use codewright_proto::{Clock, TokenUsage};
use codewright_telemetry::{Batch, Context, Deliver, Delivered, Kind, Settings, Span, Tracer};
use serde_json::json;

use crate::engine::Inner;
use crate::{Engine, Level};

/// The methods of requests.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The collector, over the network of the program.
struct Collector(Client);

impl Deliver for Collector {
    fn deliver(&self, batch: Batch) -> Pin<Box<dyn Future<Output = Delivered> + Send + '_>> {
        Box::pin(async move {
            let Batch { address, body } = batch;
            match codewright_llm::web::post(&self.0, &address.url, &address.headers, body).await {
                Ok(200..=299) => Delivered::Accepted,
                Ok(408 | 429 | 502..=504) | Err(_) => Delivered::Retry,
                Ok(_) => Delivered::Rejected,
            }
        })
    }
}

/// What tells, as the environment wants it, and what is wrong with that.
pub(crate) fn open(
    (env, dirs): (&Env, &Dirs),
    llm: &Client,
    (version, clock): (&str, &Clock),
) -> (Tracer, Option<String>) {
    match Settings::read(&env.of(env::TELEMETRY), version) {
        Ok(Some(mut settings)) if !is_switched_off(env, dirs) => {
            let warning = settings.warning.take();
            (Tracer::new(settings, version, clock, Collector(llm.clone())), warning)
        }
        Ok(_) => (Tracer::default(), None),
        Err(why) => (Tracer::default(), Some(format!("nothing is told to a collector: {why}"))),
    }
}

/// Whether the user's own configuration wants nothing told; a repository's has no say.
fn is_switched_off(env: &Env, dirs: &Dirs) -> bool {
    let nowhere = Path::new("/");
    let config = codewright_config::global(LoadInput { directory: nowhere, worktree: nowhere, env, dirs });
    // One that cannot be read is told where it is needed; until then nothing is told.
    config.map_or(true, |config| config["experimental"]["openTelemetry"] == json!(false))
}

impl Engine {
    /// Begins to tell of a client's request; `parent` is what it says that belongs to.
    #[must_use]
    pub fn request_span(&self, method: &str, route: &str, parent: Option<&str>) -> Span {
        let tracer = &self.0.tracer;
        if !tracer.is_on() {
            return Span::default();
        }
        // A client may invent methods; what is told has the known ones alone.
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER");
        let parent = parent.and_then(Context::parse).map(|parent| tracer.adopt(parent));
        let mut span = tracer.child_span(&format!("{method} {route}"), Kind::Server, parent);
        span.set("http.request.method", method);
        span.set("http.route", route);
        span
    }

    /// What is wrong with the variables that name a collector, and what follows from it.
    #[must_use]
    pub fn untold(&self) -> Option<&str> {
        self.0.untold.as_deref()
    }
}

impl Inner {
    /// Tells what is left, and notes what could not be told.
    pub(crate) async fn tell_the_rest(&self) {
        let counts = self.tracer.close().await;
        if counts.dropped + counts.lost > 0 {
            let about = json!({ "told": counts.exported, "dropped": counts.dropped, "lost": counts.lost });
            self.note(Level::Warn, "telemetry", "the collector does not have all", Some(about)).await;
        }
    }
}

/// Begins to tell of a request to a model.
pub(crate) fn request(inner: &Inner, model: &Model) -> Span {
    let mut span = inner.tracer.span_on("chat", &model.id, Kind::Client);
    span.set("gen_ai.operation.name", "chat");
    span.set("gen_ai.provider.name", model.provider_id.as_str());
    span.set("gen_ai.request.model", model.id.as_str());
    span
}

/// Tells how a request to a model ended; an error that is none is that it was stopped.
pub(crate) fn answered(mut span: Span, tokens: &TokenUsage, error: Option<Option<&Refusal>>) {
    span.set("gen_ai.usage.input_tokens", tokens.input);
    span.set("gen_ai.usage.output_tokens", tokens.output);
    let Some(error) = error else { return };
    let Some(error) = error else { return span.fail("aborted") };
    if let Some(status) = error.failure().status {
        span.set("http.response.status_code", status);
    }
    span.fail(match error {
        Refusal::Busy { .. } => "busy",
        Refusal::Overflow { .. } => "overflow",
        Refusal::Auth { .. } => "auth",
        Refusal::Rejected { .. } => "rejected",
    });
}
