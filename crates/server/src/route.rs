//! The HTTP service: the routes with their handlers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use codewright_engine::Engine;
use http::Uri;
use tower::{ServiceExt, service_fn};

use crate::Options;
use crate::document::Operation;
use crate::nodes::reach::Reach;
use crate::nodes::signals;
use crate::plugins;
use crate::state::Server;

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
mod ops;
mod page;
mod paths;
mod permission;
mod project;
mod pty;
mod question;
mod review;
mod sandbox;
mod session;
mod sign_in;
mod sync;
mod table;
mod trust;
mod tui;
mod users;
mod vcs;
mod worktree;

pub(crate) use api::lists;
pub(crate) use page::is_file;
pub(crate) use paths::Paths;
use table::table;

/// Returns the method and the path of every route.
#[must_use]
pub fn routes() -> Vec<(&'static str, &'static str)> {
    table().map(|route| (route.method, route.path)).collect()
}

/// Returns what the API document says about every route.
pub(crate) fn operations() -> impl Iterator<Item = Operation> {
    table().map(table::Route::described)
}

/// A route, as far as its place among several servers depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    /// The template.
    pub(crate) path: &'static str,
    pub(crate) reach: Reach,
    pub(crate) has_deadline: bool,
}

/// Returns the engine as an HTTP service.
pub fn router(engine: Engine, options: Options) -> Router {
    if let Some(auth) = &options.auth {
        engine.users().set_quotas(auth.quotas().clone());
    }
    let app = Server::new(engine.clone(), options);
    if app.nodes.is_some() {
        let (tasks, closing) = (app.options.tasks.clone(), app.options.closing.clone());
        tasks.spawn(signals::follow(Arc::clone(&app), closing));
    }
    let paths = Arc::new(Paths::new(app));
    plugins::serve(&engine, &paths);
    Router::new().fallback_service(service_fn(move |request| {
        let paths = Arc::clone(&paths);
        async move { answer(&paths, request).await }
    }))
}

/// Passes a request to the service of its path.
pub(crate) async fn answer(paths: &Paths, request: Request) -> Result<Response, Infallible> {
    // Before everything else that reads the path, so that all layers see the same path.
    let request = normalize(request);
    let service = paths.service(request.uri().path()).clone();
    service.oneshot(request).await
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
