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
use codewright_telemetry::{Batch, Deliver, Delivered, Kind, Settings, Span, Tracer};
use serde_json::json;

/// The methods of requests.
pub(crate) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

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

/// Begins to tell of a request to a model.
pub(crate) fn request(tracer: &Tracer, model: &Model) -> Span {
    let mut span = tracer.span_on("chat", &model.id, Kind::Client);
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
