//! Every route: its method, its path, its function.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use codewright_engine::Engine;

use crate::guard::{guard, hurry};
use crate::state::{App, Server};
use crate::{Error, Options};

mod auth;
mod event;
mod instance;
mod permission;
mod session;
mod sync;

use session::change;

struct Route {
    method: &'static str,
    path: &'static str,
    run: MethodRouter<App>,
    pace: Pace,
}

/// How long a route may take.
#[derive(Clone, Copy)]
enum Pace {
    /// The deadline of ordinary requests.
    Quick,
    /// As long as something is going on.
    Long,
}

fn route(method: &'static str, path: &'static str, run: MethodRouter<App>) -> Route {
    Route { method, path, run, pace: Pace::Quick }
}

fn long(method: &'static str, path: &'static str, run: MethodRouter<App>) -> Route {
    Route { method, path, run, pace: Pace::Long }
}

fn table() -> Vec<Route> {
    vec![
        route("GET", "/global/health", get(instance::health)),
        long("GET", "/global/event", get(event::global)),
        long("GET", "/event", get(event::local)),
        route("GET", "/path", get(instance::path)),
        route("GET", "/project/current", get(instance::project)),
        route("GET", "/config", get(instance::config)),
        route("GET", "/config/providers", get(instance::providers)),
        route("GET", "/provider", get(instance::all_providers)),
        route("GET", "/agent", get(instance::agents)),
        route("GET", "/session", get(session::list)),
        route("POST", "/session", post(session::create)),
        route("GET", "/session/status", get(session::statuses)),
        route("GET", "/session/{sessionID}", get(session::read)),
        route("PATCH", "/session/{sessionID}", patch(session::update)),
        route("DELETE", "/session/{sessionID}", delete(session::remove)),
        route("GET", "/session/{sessionID}/message", get(session::messages)),
        long("POST", "/session/{sessionID}/message", post(session::prompt)),
        long("POST", "/session/{sessionID}/prompt", post(session::prompt)),
        route("GET", "/session/{sessionID}/message/{messageID}", get(session::message)),
        route("POST", "/session/{sessionID}/prompt_async", post(session::prompt_async)),
        route("POST", "/session/{sessionID}/abort", post(session::abort)),
        route("POST", "/session/{sessionID}/fork", post(session::fork)),
        route("GET", "/session/{sessionID}/children", get(change::children)),
        route("GET", "/session/{sessionID}/todo", get(change::todos)),
        route("GET", "/session/{sessionID}/diff", get(change::diff)),
        route("DELETE", "/session/{sessionID}/message/{messageID}", delete(change::remove_message)),
        route(
            "DELETE",
            "/session/{sessionID}/message/{messageID}/part/{partID}",
            delete(change::remove_part),
        ),
        route("PATCH", "/session/{sessionID}/message/{messageID}/part/{partID}", patch(change::update_part)),
        route("POST", "/session/{sessionID}/share", post(change::share)),
        route("DELETE", "/session/{sessionID}/share", delete(change::unshare)),
        long("POST", "/session/{sessionID}/revert", post(change::revert)),
        long("POST", "/session/{sessionID}/unrevert", post(change::unrevert)),
        long("POST", "/session/{sessionID}/summarize", post(session::summarize)),
        long("POST", "/session/{sessionID}/compact", post(session::compact)),
        route("POST", "/session/{sessionID}/init", post(change::init)),
        route("POST", "/sync/replay", post(sync::replay)),
        route("POST", "/sync/history", post(sync::history)),
        route("PUT", "/auth/{providerID}", put(auth::set)),
        route("DELETE", "/auth/{providerID}", delete(auth::remove)),
        route("GET", "/provider/auth", get(auth::methods)),
        long("POST", "/provider/{providerID}/oauth/authorize", post(auth::begin)),
        long("POST", "/provider/{providerID}/oauth/callback", post(auth::finish)),
        route("GET", "/permission", get(permission::list)),
        route("POST", "/permission/{requestID}/reply", post(permission::reply)),
        route("POST", "/session/{sessionID}/permissions/{permissionID}", post(permission::respond)),
    ]
}

/// The method and the path of every route.
#[must_use]
pub fn routes() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|route| (route.method, route.path)).collect()
}

/// The engine as an HTTP service.
pub fn router(engine: Engine, options: Options) -> Router {
    let app = Server::new(engine, options);
    let routed = table().into_iter().fold(Router::new(), |router, Route { path, run, pace, .. }| {
        let run = match pace {
            Pace::Quick => run.layer(from_fn_with_state(Arc::clone(&app), hurry)),
            Pace::Long => run,
        };
        router.route(path, run)
    });
    routed
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

async fn no_route(request: Request) -> Error {
    Error::NoRoute { method: request.method().to_string(), path: request.uri().path().to_owned() }
}

async fn no_method(request: Request) -> Error {
    Error::NoMethod { method: request.method().to_string(), path: request.uri().path().to_owned() }
}
