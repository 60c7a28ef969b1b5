//! The sandbox of the model's commands.

use axum::Json;
use axum::extract::State;
use codewright_engine::{SandboxLook, SandboxStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::extract::{Location, Params};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct Query {
    probe: Option<String>,
}

/// Returns what holds for commands in the directory. Only with `probe=true` it starts a process to find out.
pub(super) async fn read(
    State(app): State<App>,
    location: Location,
    Params(query): Params<Query>,
) -> Json<Value> {
    let is_probed = query.probe.as_deref() == Some("true");
    let look = if is_probed { SandboxLook::Probe } else { SandboxLook::Known };
    Json(value(&app.engine.sandboxes().status(&location.instance, look).await))
}

fn value(status: &SandboxStatus) -> Value {
    let mut value = json!({
        "mode": status.mode.name(),
        "network": status.network.name(),
        "outer": status.has_outer,
    });
    if let (Some(support), Some(is_enforced)) = (&status.support, status.is_enforced) {
        value["mechanism"] = support.mechanism.name().into();
        value["enforced"] = is_enforced.into();
        value["reasons"] = support.reasons.clone().into();
        value["gaps"] = support.mechanism.gaps().into();
    }
    value
}
