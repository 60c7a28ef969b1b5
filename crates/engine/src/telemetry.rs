//! Exports spans to a collector.
//!
//! Client requests, turns, steps, model requests and tool calls are exported, with names, numbers and ids of this
//! program. Texts of users, models, files and commands are never exported.

use std::path::Path;
use std::pin::Pin;

use codewright_config::{Dirs, Env, LoadInput, env};
use codewright_llm::{Client, Error as Refusal, Model};
use codewright_proto::{Clock, TokenUsage};
use codewright_telemetry::{Batch, Deliver, Delivery, Kind, Settings, Span, Tracer};
use serde_json::json;

/// The request methods that are exported by name.
pub(crate) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

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
    env: &Env,
    dirs: &Dirs,
    llm: &Client,
    version: &str,
    clock: &Clock,
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

/// Starts the span of a model request.
pub(crate) fn request(tracer: &Tracer, model: &Model) -> Span {
    let mut span = tracer.span_on("chat", &model.id, Kind::Client);
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
