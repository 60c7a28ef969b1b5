//! Every route: its method, its path, its function.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use codewright_engine::Engine;
use http::Uri;
use tower::ServiceExt;

use crate::guard::{guard, hurry, last};
use crate::state::{App, Server};
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
mod trust;
mod tui;
mod vcs;

use api::{history, integration, message, revert, terminal, waiting};
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
    [instances(), sessions(), files(), trials(), clients(), v2()].into_iter().flatten().collect()
}

/// The server, its directories, and what holds in them.
fn instances() -> Vec<Route> {
    vec![
        route("GET", "/doc", get(doc::read)),
        route("GET", "/global/health", get(instance::health)),
        long("GET", "/global/event", get(event::global)),
        long("GET", "/event", get(event::local)),
        route("GET", "/path", get(instance::path)),
        route("POST", "/instance/dispose", post(instance::dispose)),
        route("POST", "/global/dispose", post(instance::dispose_all)),
        route("POST", "/global/upgrade", post(instance::upgrade)),
        route("POST", "/log", post(log::write)),
        route("GET", "/project", get(project::list)),
        route("GET", "/project/current", get(project::current)),
        route("POST", "/project/git/init", post(project::init_git)),
        route("PATCH", "/project/{projectID}", patch(project::update)),
        route("GET", "/project/{projectID}/directories", get(project::directories)),
        route("GET", "/config", get(config::read)),
        route("PATCH", "/config", patch(config::change)),
        route("PUT", "/config", put(config::change)),
        route("GET", "/global", get(config::read_global)),
        route("GET", "/global/config", get(config::read_global)),
        route("PATCH", "/global/config", patch(config::change_global)),
        route("GET", "/trust", get(trust::read)),
        route("POST", "/trust", post(trust::decide)),
        route("POST", "/trust/dismiss", post(trust::dismiss)),
        route("GET", "/trust/decisions", get(trust::list)),
        route("DELETE", "/trust/decisions", delete(trust::remove)),
        route("GET", "/config/providers", get(instance::providers)),
        route("GET", "/provider", get(instance::all_providers)),
        route("GET", "/agent", get(instance::agents)),
        route("GET", "/command", get(instance::commands)),
        route("GET", "/skill", get(instance::skills)),
        route("GET", "/lsp", get(experimental::nothing)),
        route("GET", "/formatter", get(experimental::nothing)),
        route("GET", "/mcp", get(mcp::status)),
        route("POST", "/mcp", post(mcp::add)),
        route("POST", "/mcp/{name}/auth", post(mcp::one)),
        route("DELETE", "/mcp/{name}/auth", delete(mcp::one)),
        route("POST", "/mcp/{name}/auth/callback", post(mcp::one)),
        route("POST", "/mcp/{name}/auth/authenticate", post(mcp::one)),
        route("POST", "/mcp/{name}/connect", post(mcp::one)),
        route("POST", "/mcp/{name}/disconnect", post(mcp::one)),
    ]
}

/// Sessions and what waits for a user in them.
fn sessions() -> Vec<Route> {
    vec![
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
        long("POST", "/session/{sessionID}/command", post(session::command)),
        long("POST", "/session/{sessionID}/summarize", post(session::summarize)),
        long("POST", "/session/{sessionID}/compact", post(session::compact)),
        long("POST", "/session/{sessionID}/shell", post(session::shell)),
        long("POST", "/session/{sessionID}/init", post(session::init)),
        route("POST", "/sync/start", post(sync::start)),
        route("POST", "/sync/steal", post(experimental::no_workspaces)),
        route("POST", "/sync/replay", post(sync::replay)),
        route("POST", "/sync/history", post(sync::history)),
        route("PUT", "/auth/{providerID}", put(auth::set)),
        route("DELETE", "/auth/{providerID}", delete(auth::remove)),
        route("GET", "/provider/auth", get(auth::methods)),
        long("POST", "/provider/{providerID}/oauth/authorize", post(auth::begin)),
        long("POST", "/provider/{providerID}/oauth/callback", post(auth::finish)),
        route("GET", "/pty/shells", get(pty::shells)),
        route("GET", "/pty", get(pty::list)),
        route("POST", "/pty", post(pty::create)),
        route("GET", "/pty/{ptyID}", get(pty::read)),
        route("PUT", "/pty/{ptyID}", put(pty::update)),
        route("DELETE", "/pty/{ptyID}", delete(pty::remove)),
        route("POST", "/pty/{ptyID}/connect-token", post(pty::ticket)),
        long("GET", "/pty/{ptyID}/connect", get(pty::connect)),
        route("GET", "/permission", get(permission::list)),
        route("POST", "/permission/{requestID}/reply", post(permission::reply)),
        route("POST", "/session/{sessionID}/permissions/{permissionID}", post(permission::respond)),
        route("GET", "/question", get(question::list)),
        route("POST", "/question/{requestID}/reply", post(question::reply)),
        route("POST", "/question/{requestID}/reject", post(question::reject)),
    ]
}

/// Files and version control.
fn files() -> Vec<Route> {
    vec![
        route("GET", "/file", get(file::list)),
        route("GET", "/file/content", get(file::content)),
        route("GET", "/file/status", get(file::status)),
        route("GET", "/find", get(file::find_text)),
        route("GET", "/find/file", get(file::find_files)),
        route("GET", "/find/symbol", get(file::find_symbols)),
        route("GET", "/vcs", get(vcs::read)),
        route("GET", "/vcs/status", get(vcs::status)),
        route("GET", "/vcs/diff", get(vcs::diff)),
        route("GET", "/vcs/diff/raw", get(vcs::raw)),
        route("POST", "/vcs/apply", post(vcs::apply)),
    ]
}

/// What is on trial, and rooms that are not built yet.
fn trials() -> Vec<Route> {
    vec![
        route("GET", "/experimental/capabilities", get(experimental::capabilities)),
        route("GET", "/experimental/console", get(experimental::console)),
        route("GET", "/experimental/console/orgs", get(experimental::orgs)),
        route("POST", "/experimental/console/switch", post(experimental::switch_org)),
        route("GET", "/experimental/tool", get(experimental::tools)),
        route("GET", "/experimental/tool/ids", get(experimental::tool_ids)),
        route("GET", "/experimental/worktree", get(experimental::worktrees)),
        route("POST", "/experimental/worktree", post(experimental::no_worktrees)),
        route("DELETE", "/experimental/worktree", delete(experimental::no_worktrees)),
        route("POST", "/experimental/worktree/reset", post(experimental::no_worktrees)),
        route("GET", "/experimental/session", get(experimental::sessions)),
        route("POST", "/experimental/session/{sessionID}/background", post(experimental::background)),
        route("GET", "/experimental/resource", get(experimental::no_entries)),
        route("GET", "/experimental/workspace/adapter", get(experimental::nothing)),
        route("GET", "/experimental/workspace", get(experimental::nothing)),
        route("POST", "/experimental/workspace", post(experimental::no_workspaces)),
        route("POST", "/experimental/workspace/sync-list", post(experimental::done)),
        route("GET", "/experimental/workspace/status", get(experimental::nothing)),
        route("DELETE", "/experimental/workspace/{id}", delete(experimental::no_workspaces)),
        route("POST", "/experimental/workspace/warp", post(experimental::no_workspaces)),
        route("POST", "/experimental/control-plane/move-session", post(experimental::no_workspaces)),
        route("POST", "/experimental/project/{projectID}/copy", post(experimental::no_worktrees)),
        route("DELETE", "/experimental/project/{projectID}/copy", delete(experimental::no_worktrees)),
        route("POST", "/experimental/project/{projectID}/copy/refresh", post(experimental::done)),
        route("POST", "/experimental/project/{projectID}/copy/generate-name", post(experimental::copy_name)),
    ]
}

/// A terminal client's remote control.
fn clients() -> Vec<Route> {
    vec![
        route("POST", "/tui/append-prompt", post(tui::append)),
        route("POST", "/tui/open-help", post(tui::open_help)),
        route("POST", "/tui/open-sessions", post(tui::open_sessions)),
        route("POST", "/tui/open-themes", post(tui::open_themes)),
        route("POST", "/tui/open-models", post(tui::open_models)),
        route("POST", "/tui/submit-prompt", post(tui::submit)),
        route("POST", "/tui/clear-prompt", post(tui::clear)),
        route("POST", "/tui/execute-command", post(tui::execute)),
        route("POST", "/tui/show-toast", post(tui::toast)),
        route("POST", "/tui/publish", post(tui::published)),
        route("POST", "/tui/select-session", post(tui::select)),
        long("GET", "/tui/control/next", get(tui::next)),
        route("POST", "/tui/control/response", post(tui::response)),
    ]
}

/// The newer routes, as far as clients call them.
fn v2() -> Vec<Route> {
    vec![
        route("GET", "/api/health", get(api::health)),
        route("GET", "/api/location", get(api::location)),
        route("GET", "/api/agent", get(api::agents)),
        route("GET", "/api/model", get(api::models)),
        route("GET", "/api/provider", get(api::providers)),
        route("GET", "/api/provider/{providerID}", get(api::provider)),
        route("GET", "/api/integration", get(integration::list)),
        route("GET", "/api/integration/{integrationID}", get(integration::read)),
        route("POST", "/api/integration/{integrationID}/connect/key", post(integration::connect_key)),
        long("POST", "/api/integration/{integrationID}/connect/oauth", post(integration::connect)),
        route("GET", "/api/integration/attempt/{attemptID}", get(integration::status)),
        route("DELETE", "/api/integration/attempt/{attemptID}", delete(integration::cancel)),
        long("POST", "/api/integration/attempt/{attemptID}/complete", post(integration::complete)),
        route("PATCH", "/api/credential/{credentialID}", patch(integration::rename)),
        route("DELETE", "/api/credential/{credentialID}", delete(integration::disconnect)),
        route("GET", "/api/reference", get(api::nothing)),
        route("GET", "/api/command", get(api::commands)),
        route("GET", "/api/skill", get(api::skills)),
        long("GET", "/api/event", get(event::v2)),
        route("GET", "/api/permission/request", get(waiting::permissions)),
        route("GET", "/api/permission/saved", get(waiting::saved)),
        route("DELETE", "/api/permission/saved/{id}", delete(waiting::forget)),
        route("GET", "/api/question/request", get(waiting::questions)),
        route("GET", "/api/session", get(api::sessions)),
        route("POST", "/api/session", post(api::session::create)),
        route("GET", "/api/session/active", get(api::active)),
        route("GET", "/api/session/{sessionID}", get(api::session)),
        route("POST", "/api/session/{sessionID}/agent", post(api::session::agent)),
        route("POST", "/api/session/{sessionID}/model", post(api::session::model)),
        route("POST", "/api/session/{sessionID}/interrupt", post(api::session::interrupt)),
        long("POST", "/api/session/{sessionID}/wait", post(api::session::wait)),
        long("POST", "/api/session/{sessionID}/compact", post(api::session::compact)),
        route("POST", "/api/session/{sessionID}/prompt", post(message::prompt)),
        route("GET", "/api/session/{sessionID}/message", get(message::messages)),
        route("GET", "/api/session/{sessionID}/message/{messageID}", get(message::one)),
        route("GET", "/api/session/{sessionID}/context", get(message::context)),
        route("GET", "/api/session/{sessionID}/history", get(history::read)),
        long("GET", "/api/session/{sessionID}/event", get(history::follow)),
        long("POST", "/api/session/{sessionID}/revert/stage", post(revert::stage)),
        long("POST", "/api/session/{sessionID}/revert/clear", post(revert::clear)),
        long("POST", "/api/session/{sessionID}/revert/commit", post(revert::commit)),
        route("POST", "/api/session/{sessionID}/permission", post(waiting::want)),
        route("GET", "/api/session/{sessionID}/permission", get(waiting::permissions_of)),
        route("GET", "/api/session/{sessionID}/permission/{requestID}", get(waiting::permission_of)),
        route("POST", "/api/session/{sessionID}/permission/{requestID}/reply", post(waiting::allow)),
        route("GET", "/api/session/{sessionID}/question", get(waiting::questions_of)),
        route("POST", "/api/session/{sessionID}/question/{requestID}/reply", post(waiting::reply)),
        route("POST", "/api/session/{sessionID}/question/{requestID}/reject", post(waiting::reject)),
        route("GET", "/api/pty", get(terminal::list)),
        route("POST", "/api/pty", post(terminal::create)),
        route("GET", "/api/pty/{ptyID}", get(terminal::read)),
        route("PUT", "/api/pty/{ptyID}", put(terminal::update)),
        route("DELETE", "/api/pty/{ptyID}", delete(terminal::remove)),
        route("POST", "/api/pty/{ptyID}/connect-token", post(terminal::ticket)),
        long("GET", "/api/pty/{ptyID}/connect", get(pty::connect)),
        route("GET", "/api/fs/list", get(file::api_list)),
        route("GET", "/api/fs/find", get(file::api_find)),
        route("GET", "/api/fs/read/{*path}", get(file::api_read)),
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
            Pace::Long => run.layer(from_fn(last)),
        };
        let run = if path.starts_with("/api/") { run.layer(map_response(error::v2)) } else { run };
        router.route(path, run)
    });
    let routed = routed
        // For people, and so neither in the table nor in the document of what programs may ask.
        .route("/", get(page::read))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .layer(from_fn_with_state(Arc::clone(&app), trace))
        .with_state(app);
    // Before anything else looks at the path, so that all see the same one.
    Router::new().fallback_service(routed.map_request(tidy))
}

/// Takes slashes that say nothing out of a path: addresses of servers are also written with one at
/// their end, and clients put their paths behind.
fn tidy(mut request: Request) -> Request {
    let uri = request.uri();
    let path = uri.path();
    if path == "/" || !(path.ends_with('/') || path.contains("//")) {
        return request;
    }
    let tidied: String =
        path.split('/').filter(|name| !name.is_empty()).flat_map(|name| ["/", name]).collect();
    let tidied = if tidied.is_empty() { "/" } else { &tidied };
    let written = uri.query().map_or_else(|| tidied.to_owned(), |query| format!("{tidied}?{query}"));
    let mut parts = uri.clone().into_parts();
    // What was an address stays one with fewer slashes; if not, it is answered as it came.
    parts.path_and_query = written.parse().ok();
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
