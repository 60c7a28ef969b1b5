//! `GET /doc`: the API document.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use crate::document::document;
use crate::route::operations;

pub(super) async fn read() -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, document(operations())).into_response()
}
