//! Questions to the user and their answers.

use axum::Json;
use axum::extract::State;
use codewright_proto::{QuestionAnswers, QuestionId, QuestionRequest};

use crate::Error;
use crate::extract::{Location, One, Payload};
use crate::state::App;

pub(super) async fn list(State(app): State<App>, location: Location) -> Json<Vec<QuestionRequest>> {
    let pending = app.engine.questions().pending();
    Json(app.in_directory(&location, pending, |request| &request.session_id).await)
}

pub(super) async fn reply(
    State(app): State<App>,
    One(id): One<QuestionId>,
    Payload(answer): Payload<QuestionAnswers>,
) -> Result<Json<bool>, Error> {
    app.engine.questions().answer(&id, answer.answers)?;
    Ok(Json(true))
}

pub(super) async fn reject(State(app): State<App>, One(id): One<QuestionId>) -> Result<Json<bool>, Error> {
    app.engine.questions().reject(&id)?;
    Ok(Json(true))
}
