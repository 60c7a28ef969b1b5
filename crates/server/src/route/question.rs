//! Questions to the user and their answers.

use axum::Json;
use axum::extract::State;
use codewright_proto::{
    PermissionAnswer, PermissionId, PermissionReply, QuestionAnswers, QuestionId, QuestionRequest,
};
use serde::Deserialize;

use crate::Error;
use crate::auth::{Viewer, Who, answer_question, on_permission, on_question};
use crate::extract::{Location, One, Payload};
use crate::state::App;

pub(super) async fn list(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
) -> Json<Vec<QuestionRequest>> {
    let pending = app.engine.questions().pending();
    Json(app.in_directory(&mut viewer, &location, pending, |request| &request.session_id).await)
}

pub(super) async fn reply(
    State(app): State<App>,
    who: Who,
    One(id): One<QuestionId>,
    Payload(answer): Payload<QuestionAnswers>,
) -> Result<Json<bool>, Error> {
    Box::pin(answer_question(&app, &who, &id, Some(answer.answers))).await?;
    Ok(Json(true))
}

/// A reply to a question or to a permission request, in the format of older clients.
#[derive(Deserialize)]
pub(super) struct Reply {
    id: String,
    answers: Option<Vec<Vec<String>>>,
    reply: Option<PermissionReply>,
    message: Option<String>,
    #[serde(default)]
    wider: Vec<String>,
    #[serde(default)]
    automatic: bool,
}

/// Replies to a question, or to a permission request if the id is that of one.
pub(super) async fn answer(
    State(app): State<App>,
    mut viewer: Viewer,
    Payload(body): Payload<Reply>,
) -> Result<Json<bool>, Error> {
    Box::pin(on_permission(&app, &mut viewer, &body.id)).await?;
    Box::pin(on_question(&app, &mut viewer, &body.id)).await?;
    let missing = |key: &str| Error::payload(format!("Missing key\n  at [\"{key}\"]"));
    if let Ok(id) = PermissionId::parse(&body.id) {
        let reply = body.reply.ok_or_else(|| missing("reply"))?;
        let Reply { message, wider, automatic, .. } = body;
        let answer = PermissionAnswer { reply, message, wider, automatic };
        return Box::pin(app.answer(viewer.who(), id, answer)).await;
    }
    let id =
        QuestionId::parse(&body.id).map_err(|error| Error::payload(format!("{error}\n  at [\"id\"]")))?;
    match (body.answers, body.reply) {
        (_, Some(PermissionReply::Reject)) => {
            Box::pin(answer_question(&app, viewer.who(), &id, None)).await?;
        }
        (Some(answers), _) => Box::pin(answer_question(&app, viewer.who(), &id, Some(answers))).await?,
        (None, _) => return Err(missing("answers")),
    }
    Ok(Json(true))
}

pub(super) async fn reject(
    State(app): State<App>,
    who: Who,
    One(id): One<QuestionId>,
) -> Result<Json<bool>, Error> {
    Box::pin(answer_question(&app, &who, &id, None)).await?;
    Ok(Json(true))
}
