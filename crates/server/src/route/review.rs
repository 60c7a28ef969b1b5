//! Reviews of changes, and reports of bugs.

use axum::Json;
use axum::extract::State;
use codewright_proto::{BugReport, Review, ReviewRequest, SessionId};
use serde::Deserialize;

use crate::Error;
use crate::extract::{Location, One, Params};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct Query {
    range: Option<String>,
}

/// Returns the session and the prompt of a review.
pub(super) async fn request(
    location: Location,
    Params(query): Params<Query>,
) -> Result<Json<ReviewRequest>, Error> {
    let request = location.instance.review_request(query.range.as_deref()).await?;
    request.map(Json).ok_or_else(|| Error::Refused {
        name: "ReviewError",
        message: "there are no uncommitted changes to review; name a range, such as `main...HEAD`".to_owned(),
        reason: Some("unchanged"),
    })
}

/// Returns the findings of a review.
pub(super) async fn findings(State(app): State<App>, One(id): One<SessionId>) -> Result<Json<Review>, Error> {
    Ok(Json(app.engine.sessions().review(&id).await?))
}

/// Returns a report for the developers. Nothing is stored or sent.
pub(super) async fn bug(State(app): State<App>, location: Location) -> Result<Json<BugReport>, Error> {
    let Some(report) = &app.options.report else {
        return Err(Error::NotSupported { feature: "a report of a problem" });
    };
    let secrets = app.options.password().map(str::to_owned).into_iter().collect();
    Ok(Json(report(app.engine.clone(), location.instance, secrets).await))
}
