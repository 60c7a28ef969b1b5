//! Exports spans to a collector.
//!
//! Client requests, turns, steps, model requests and tool calls are exported, with names, numbers and ids of this
//! program. Texts of users, models, files and commands are never exported.

use std::path::Path;
use std::pin::Pin;

use codewright_config::{Dirs, Env, LoadInput, env};
use codewright_llm::{Client, Error as Refusal, Model};
use codewright_proto::{Clock, TokenUsage};
use codewright_telemetry::{Batch, Context, Deliver, Delivery, Kind, Settings, Span, Tracer};
use serde_json::json;

use crate::engine::Inner;
use crate::{Engine, Level};

/// The request methods that are exported by name.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Sends spans over the network of the program.
struct Collector(Client);

impl Deliver for Collector {
    fn deliver(&self, batch: Batch) -> Pin<Box<dyn Future<Output = Delivery> + Send + '_>> {
        Box::pin(async move {
            let Batch { address, body } = batch;
            match codewright_llm::web::post(&self.0, &address.url, &address.headers, body).await {
                Ok(200..=299) => Delivery::Accepted,
                Ok(408 | 429 | 502..=504) | Err(_) => Delivery::Retry,
                Ok(_) => Delivery::Rejected,
            }
        })
    }
}

/// Creates the tracer that the environment configures. Also returns the reason if it is off although it was configured.
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
        Err(why) => (Tracer::default(), Some(format!("telemetry is off: {why}"))),
    }
}

/// Reports whether the user's configuration turns telemetry off. The configuration of a repository cannot.
fn is_switched_off(env: &Env, dirs: &Dirs) -> bool {
    let nowhere = Path::new("/");
    let config = codewright_config::global(LoadInput { directory: nowhere, worktree: nowhere, env, dirs });
    // An unreadable configuration is reported elsewhere. Until it is fixed, telemetry is off.
    config.map_or(true, |config| config["experimental"]["openTelemetry"] == json!(false))
}

impl Engine {
    /// Starts the span of a client's request. `parent` is its `traceparent` header.
    #[must_use]
    pub fn request_span(&self, method: &str, route: &str, parent: Option<&str>) -> Span {
        let tracer = &self.0.tracer;
        if !tracer.is_on() {
            return Span::default();
        }
        // A client can send any method; only known ones are exported.
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER");
        let parent = parent.and_then(Context::parse).map(|parent| tracer.adopt(parent));
        let mut span = tracer.child_span(&format!("{method} {route}"), Kind::Server, parent);
        span.set("http.request.method", method);
        span.set("http.route", route);
        span
    }

    /// Returns the problem with the variables of the collector and its effect.
    #[must_use]
    pub fn untold(&self) -> Option<&str> {
        self.0.untold.as_deref()
    }
}

impl Inner {
    /// Exports the remaining spans, and logs what could not be exported.
    pub(crate) async fn tell_the_rest(&self) {
        let counts = self.tracer.close().await;
        if counts.dropped + counts.lost > 0 {
            let about = json!({ "told": counts.exported, "dropped": counts.dropped, "lost": counts.lost });
            self.note(Level::Warn, "telemetry", "some spans could not be exported", Some(about)).await;
        }
    }
}

/// Starts the span of a model request.
pub(crate) fn request(inner: &Inner, model: &Model) -> Span {
    let mut span = inner.tracer.span_on("chat", &model.id, Kind::Client);
    span.set("gen_ai.operation.name", "chat");
    span.set("gen_ai.provider.name", model.provider_id.as_str());
    span.set("gen_ai.request.model", model.id.as_str());
    span
}

/// Ends the span of a model request. An error of `Some(None)` means that the request was aborted.
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
