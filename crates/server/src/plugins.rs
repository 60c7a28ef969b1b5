//! Answers the requests of plugins to the API, without a socket.

use std::sync::{Arc, Weak};

use axum::body::Body;
use axum::extract::Request;
use codewright_engine::Engine;
use codewright_engine::plugin_host::{ApiRequest, ApiResponse};
use futures_util::StreamExt as _;
use http::HeaderMap;

use crate::route::{Paths, answer, lists};

/// Marks a request of a plugin. Only this module creates it, so no connection can have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfPlugin(());

/// Lets the plugins of an engine use its API as long as the router exists.
pub(crate) fn serve(engine: &Engine, paths: &Arc<Paths>) {
    let paths = Arc::downgrade(paths);
    engine.extensions().serve_lists(lists);
    engine.extensions().serve_api(Arc::new(move |request| {
        let paths = paths.clone();
        Box::pin(async move { respond(&paths, request).await })
    }));
}

async fn respond(paths: &Weak<Paths>, request: ApiRequest) -> Result<ApiResponse, String> {
    let paths = paths.upgrade().ok_or("the server is ending")?;
    let request = convert(request).map_err(|error| format!("the request is invalid: {error}"))?;
    let response = match answer(&paths, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let (head, body) = response.into_parts();
    let body = body.into_data_stream().map(|piece| piece.map_err(|error| error.to_string()));
    Ok(ApiResponse { status: head.status.as_u16(), headers: headers(&head.headers), body: Box::pin(body) })
}

fn convert(request: ApiRequest) -> Result<Request, http::Error> {
    let ApiRequest { method, path, headers, body } = request;
    let mut builder = http::Request::builder().method(method.as_str()).uri(path).extension(OfPlugin(()));
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder.body(Body::from(body))
}

fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
