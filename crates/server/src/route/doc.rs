//! The document of all routes.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use crate::document::document;
use crate::route::routes;

pub(super) async fn read() -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, document(&routes())).into_response()
}
