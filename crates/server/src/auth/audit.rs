//! The audit log: who decided what. Entries are written after the decision took effect, and never contain content.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use codewright_engine::{Audited, Level as LogLevel};
use codewright_proto::PermissionReply;
use serde_json::json;

use super::Who;
use crate::state::App;

/// The number of refused sign-ins in an interval that are recorded. Strangers can cause any number of them.
const MAX_REFUSALS: u32 = 20;
/// The interval.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

/// The recorded refusals of an interval.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Option<(Instant, u32)>>);

impl Refusals {
    /// Counts a refusal. Returns whether it is recorded.
    fn admit(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let (since, count) = state.filter(|(since, _)| now - *since < REFUSAL_INTERVAL).unwrap_or((now, 0));
        *state = Some((since, count.saturating_add(1)));
        count < MAX_REFUSALS
    }
}

/// Records a decision of the sender of a request, if the server has users.
pub(crate) async fn record(app: &App, who: &Who, [action, target, detail]: [&str; 3]) {
    if app.options.auth.is_none() {
        return;
    }
    let entry = Audited {
        account: who.name().to_owned(),
        action: action.to_owned(),
        target: target.to_owned(),
        detail: detail.to_owned(),
        request: codewright_engine::current_request().unwrap_or_default(),
        ..Audited::default()
    };
    write(app, entry).await;
}

/// Records a reply to a permission request.
pub(crate) async fn record_reply(app: &App, who: &Who, id: &str, reply: PermissionReply) {
    let detail = match reply {
        PermissionReply::Once => "once",
        PermissionReply::Always => "always",
        PermissionReply::Reject => "reject",
    };
    record(app, who, ["permission.reply", id, detail]).await;
}

/// Records a refused sign-in.
pub(super) async fn refused(app: &App, peer: String) {
    if !app.refusals.admit() {
        return;
    }
    let entry = Audited {
        action: "sign_in.refused".to_owned(),
        target: peer,
        request: codewright_engine::current_request().unwrap_or_default(),
        is_refusal: true,
        ..Audited::default()
    };
    write(app, entry).await;
}

/// Writes an entry. A failure is logged: the decision has been made, and the store has reported its own failure.
async fn write(app: &App, entry: Audited) {
    let about = json!({"user": entry.account, "action": entry.action, "target": entry.target, "detail": entry.detail});
    if app.engine.users().audit(entry).await.is_err() {
        let text = "an entry of the audit log could not be stored";
        app.engine.log().write(LogLevel::Error, "audit", text, Some(about)).await;
    }
}
