//! The HTTP service: the table of routes with their handlers and middleware.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::get;
use codewright_engine::Engine;
use http::Uri;
use tower::ServiceExt;

use crate::compress::compression;
use crate::guard::{guard, hurry, last};
use crate::state::Server;
use crate::trace::trace;
use crate::{Error, Options, error};

mod api;
mod auth;
mod config;
mod doc;
mod event;
mod experimental;
mod file;
mod instance;
mod log;
mod mcp;
mod page;
mod permission;
mod project;
mod pty;
mod question;
mod session;
mod sync;
mod table;
mod trust;
mod tui;
mod vcs;
mod worktree;

use table::{Route, table};

/// Returns the method and the path of every route.
#[must_use]
pub fn routes() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|route| (route.method, route.path)).collect()
}

/// Returns the operation id, the method and the path of every route.
pub(crate) fn operations() -> Vec<(&'static str, &'static str, &'static str)> {
    table().into_iter().map(|route| (route.operation, route.method, route.path)).collect()
}

/// Returns the engine as an HTTP service.
pub fn router(engine: Engine, options: Options) -> Router {
    let app = Server::new(engine, options);
    let routed =
        table().into_iter().fold(Router::new(), |router, Route { path, handler, has_deadline, .. }| {
            let handler = if has_deadline {
                handler.layer(from_fn_with_state(Arc::clone(&app), hurry))
            } else {
                handler.layer(from_fn(last))
            };
            let handler =
                if path.starts_with("/api/") { handler.layer(map_response(error::v2)) } else { handler };
            router.route(path, handler)
        });
    let routed = routed
        // A page for browsers, and therefore not in the table and not in the API document.
        .route("/", get(page::read))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(compression())
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .layer(from_fn_with_state(Arc::clone(&app), trace))
        .with_state(app);
    // Runs before everything else that reads the path, so that all layers see the same path.
    Router::new().fallback_service(routed.map_request(normalize))
}

/// Removes redundant slashes from the path: clients append paths to server URLs that may end with a slash.
fn normalize(mut request: Request) -> Request {
    let uri = request.uri();
    let path = uri.path();
    if path == "/" || !(path.ends_with('/') || path.contains("//")) {
        return request;
    }
    let normalized: String =
        path.split('/').filter(|name| !name.is_empty()).flat_map(|name| ["/", name]).collect();
    let normalized = if normalized.is_empty() { "/" } else { &normalized };
    let path_and_query = match uri.query() {
        Some(query) => format!("{normalized}?{query}"),
        None => normalized.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    // A valid URI is still valid with fewer slashes. If it is not, the request keeps its URI.
    parts.path_and_query = path_and_query.parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    request
}

async fn no_route(request: Request) -> Error {
    Error::NoRoute { method: request.method().to_string(), path: request.uri().path().to_owned() }
}

async fn no_method(request: Request) -> Error {
    Error::NoMethod { method: request.method().to_string(), path: request.uri().path().to_owned() }
}
