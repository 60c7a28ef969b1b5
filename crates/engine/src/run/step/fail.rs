//! Ends steps that have no answer.

use codewright_proto::{AssistantMessage, MessageError, Signal};
use codewright_store::Lease;
use serde_json::json;

use super::store::flush;
use crate::inner::Inner;
use crate::run::recorder::Recorder;
use crate::run::status::signal_idle;
use crate::{Error, Level};

/// Ends a step that has no answer, and publishes the error.
pub(crate) async fn fail(
    lease: &Lease,
    inner: &Inner,
    mut recorder: Recorder,
    error: MessageError,
) -> Result<(), Error> {
    tell_failure(inner, &recorder, error.clone()).await;
    recorder.close(Some(error));
    flush(lease, inner, &mut recorder).await
}

/// Does the same for a step whose model was called. Clients receive the idle status before the end of the message, and
/// again at the end of the turn.
pub(crate) async fn give_up(
    lease: &Lease,
    inner: &Inner,
    mut recorder: Recorder,
    error: MessageError,
) -> Result<(), Error> {
    tell_failure(inner, &recorder, error.clone()).await;
    signal_idle(inner, &recorder.message().session_id);
    recorder.unfinish();
    recorder.close(Some(error));
    flush(lease, inner, &mut recorder).await
}

async fn tell_failure(inner: &Inner, recorder: &Recorder, error: MessageError) {
    let session_id = Some(recorder.message().session_id.clone());
    note_failure(inner, recorder.message(), &error).await;
    inner.store.signal(Signal::SessionError { session_id, error });
}

/// Logs the error of a turn. An abort by the user is not an error.
async fn note_failure(inner: &Inner, message: &AssistantMessage, error: &MessageError) {
    let error = json!(error);
    if error["name"] == "MessageAbortedError" {
        return;
    }
    let words = error["data"]["message"].as_str().unwrap_or_default();
    let about = json!({
        "sessionID": message.session_id,
        "messageID": message.id,
        "error": error["name"],
        "statusCode": error["data"]["statusCode"],
        "model": format!("{}/{}", message.provider_id, message.model_id),
    });
    inner.journal.note(Level::Warn, "session", words, Some(about)).await;
}
