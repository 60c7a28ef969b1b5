//! The table of all routes. A row holds the method, the path, the handler and the operation id.
//!
//! The operation id is the name of the route in the API document and the key of its line in
//! `document/operations.txt`. A row is a constant: the service of a handler is made when a request needs it.

use axum::routing::{self, MethodRouter};

use super::api::{self, history, integration, message, pending, revert, terminal};
use super::session::{self, change};
use super::{
    Reached, auth, config, doc, event, experimental, file, instance, log, mcp, ops, permission, project, pty,
    question, review, sandbox, sign_in, sync, trust, tui, users, vcs, worktree,
};
use crate::state::App;

/// A row of the table.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// The number of bytes of the path before its first parameter.
    pub(super) fixed_bytes: usize,
    pub(super) operation: &'static str,
    /// Makes the service of the handler.
    pub(super) handler: fn() -> MethodRouter<App>,
    pub(super) has_deadline: bool,
}

impl Route {
    const fn new(
        method: &'static str,
        path: &'static str,
        handler: fn() -> MethodRouter<App>,
        operation: &'static str,
    ) -> Self {
        let mut fixed_bytes = 0;
        while fixed_bytes < path.len() && path.as_bytes()[fixed_bytes] != b'{' {
            fixed_bytes += 1;
        }
        Self { method, path, fixed_bytes, operation, handler, has_deadline: true }
    }

    /// Returns what its place among several servers depends on.
    pub(super) const fn reached(&self) -> Reached {
        let Self { method, path, operation, has_deadline, .. } = *self;
        Reached { method, path, operation, has_deadline }
    }

    /// The route may take longer than the deadline of requests: it streams, or waits for a model or a user.
    const fn without_deadline(self) -> Self {
        Self { has_deadline: false, ..self }
    }
}

macro_rules! get {
    ($path:literal, $handler:expr, $operation:literal $(,)?) => {
        Route::new("GET", $path, || routing::get($handler), $operation)
    };
}

macro_rules! post {
    ($path:literal, $handler:expr, $operation:literal $(,)?) => {
        Route::new("POST", $path, || routing::post($handler), $operation)
    };
}

macro_rules! put {
    ($path:literal, $handler:expr, $operation:literal $(,)?) => {
        Route::new("PUT", $path, || routing::put($handler), $operation)
    };
}

macro_rules! patch {
    ($path:literal, $handler:expr, $operation:literal $(,)?) => {
        Route::new("PATCH", $path, || routing::patch($handler), $operation)
    };
}

macro_rules! delete {
    ($path:literal, $handler:expr, $operation:literal $(,)?) => {
        Route::new("DELETE", $path, || routing::delete($handler), $operation)
    };
}

/// All routes.
pub(super) fn table() -> impl Iterator<Item = &'static Route> {
    [INSTANCES, SESSIONS, FILES, EXPERIMENTAL, CLIENTS, V2, V2_SESSIONS].into_iter().flatten()
}

/// The server, instances, configuration, trust and MCP servers.
const INSTANCES: &[Route] = &[
    get!("/doc", doc::read, "doc.get"),
    get!("/global/health", instance::health, "global.health"),
    get!("/global/ready", ops::ready, "global.ready"),
    post!("/sign-in", sign_in::begin, "auth.signIn"),
    post!("/sign-out", sign_in::end, "auth.signOut"),
    get!("/users/me", users::me, "users.me"),
    get!("/users/usage", users::usage, "users.usage"),
    get!("/users/audit", users::audit, "users.audit"),
    put!("/session/{sessionID}/access", users::share, "users.access"),
    get!("/metrics", ops::metrics, "global.metrics"),
    get!("/global/event", event::global, "global.event").without_deadline(),
    get!("/global/sync-event", event::sync, "global.syncEvent").without_deadline(),
    get!("/event", event::local, "event.subscribe").without_deadline(),
    get!("/path", instance::path, "path.get"),
    post!("/instance/dispose", instance::dispose, "instance.dispose"),
    post!("/global/dispose", instance::dispose_all, "global.dispose"),
    post!("/global/drain", instance::drain, "global.drain"),
    post!("/global/upgrade", instance::upgrade, "global.upgrade"),
    post!("/log", log::write, "app.log"),
    get!("/log", log::read, "app.log.read"),
    get!("/project", project::list, "project.list"),
    get!("/project/current", project::current, "project.current"),
    post!("/project/git/init", project::init_git, "project.initGit"),
    patch!("/project/{projectID}", project::update, "project.update"),
    get!("/project/{projectID}/directories", project::directories, "project.directories"),
    get!("/config", config::read, "config.get"),
    patch!("/config", config::change, "config.update"),
    put!("/config", config::change, "config.update.alias"),
    get!("/global", experimental::sessions, "experimental.session.list.alias"),
    get!("/global/config", config::read_global, "global.config.get"),
    patch!("/global/config", config::change_global, "global.config.update"),
    get!("/trust", trust::read, "trust.get"),
    post!("/trust", trust::decide, "trust.decide"),
    post!("/trust/dismiss", trust::dismiss, "trust.dismiss"),
    get!("/trust/decisions", trust::list, "trust.list"),
    delete!("/trust/decisions", trust::remove, "trust.remove"),
    get!("/config/providers", instance::providers, "config.providers"),
    get!("/provider", instance::all_providers, "provider.list"),
    get!("/agent", instance::agents, "app.agents"),
    get!("/command", instance::commands, "command.list").without_deadline(),
    get!("/skill", instance::skills, "app.skills"),
    get!("/lsp", instance::language_servers, "lsp.status"),
    get!("/formatter", instance::formatters, "formatter.status"),
    get!("/mcp", mcp::status, "mcp.status").without_deadline(),
    post!("/mcp", mcp::add, "mcp.add").without_deadline(),
    delete!("/mcp", mcp::remove, "mcp.remove"),
    post!("/mcp/{name}/auth", mcp::begin, "mcp.auth.start").without_deadline(),
    delete!("/mcp/{name}/auth", mcp::sign_out, "mcp.auth.remove"),
    post!("/mcp/{name}/auth/callback", mcp::callback, "mcp.auth.callback").without_deadline(),
    post!("/mcp/{name}/auth/authenticate", mcp::authenticate, "mcp.auth.authenticate").without_deadline(),
    post!("/mcp/{name}/connect", mcp::connect, "mcp.connect").without_deadline(),
    post!("/mcp/{name}/disconnect", mcp::disconnect, "mcp.disconnect"),
];

/// Sessions, sign-ins, terminals, permission requests and questions.
const SESSIONS: &[Route] = &[
    get!("/session", session::list, "session.list"),
    post!("/session", session::create, "session.create"),
    get!("/session/status", session::statuses, "session.status"),
    get!("/session/{sessionID}", session::read, "session.get"),
    patch!("/session/{sessionID}", session::update, "session.update"),
    delete!("/session/{sessionID}", session::remove, "session.delete"),
    get!("/session/{sessionID}/message", session::messages, "session.messages"),
    post!("/session/{sessionID}/message", session::prompt, "session.prompt").without_deadline(),
    post!("/session/{sessionID}/prompt", session::prompt, "session.prompt.alias").without_deadline(),
    get!("/session/{sessionID}/message/{messageID}", session::message, "session.message"),
    post!("/session/{sessionID}/prompt_async", session::prompt_async, "session.prompt_async"),
    post!("/session/{sessionID}/abort", session::abort, "session.abort"),
    post!("/session/{sessionID}/fork", session::fork, "session.fork"),
    get!("/session/{sessionID}/children", change::children, "session.children"),
    get!("/session/{sessionID}/todo", change::todos, "session.todo"),
    get!("/session/{sessionID}/diff", change::diff, "session.diff"),
    get!("/session/{sessionID}/review", review::findings, "session.review"),
    delete!("/session/{sessionID}/message/{messageID}", change::remove_message, "session.deleteMessage"),
    delete!("/session/{sessionID}/message/{messageID}/part/{partID}", change::remove_part, "part.delete"),
    patch!("/session/{sessionID}/message/{messageID}/part/{partID}", change::update_part, "part.update"),
    post!("/session/{sessionID}/share", change::share, "session.share"),
    delete!("/session/{sessionID}/share", change::unshare, "session.unshare"),
    post!("/session/{sessionID}/revert", change::revert, "session.revert").without_deadline(),
    post!("/session/{sessionID}/unrevert", change::unrevert, "session.unrevert").without_deadline(),
    post!("/session/{sessionID}/command", session::command, "session.command").without_deadline(),
    post!("/session/{sessionID}/summarize", session::summarize, "session.summarize").without_deadline(),
    post!("/session/{sessionID}/compact", session::compact, "session.compact.alias").without_deadline(),
    post!("/session/{sessionID}/shell", session::shell, "session.shell").without_deadline(),
    post!("/session/{sessionID}/init", session::init, "session.init").without_deadline(),
    post!("/sync/start", sync::start, "sync.start"),
    post!("/sync/steal", experimental::no_workspaces, "sync.steal"),
    post!("/sync/replay", sync::replay, "sync.replay"),
    post!("/sync/history", sync::history, "sync.history.list"),
    put!("/auth/{providerID}", auth::set, "auth.set"),
    delete!("/auth/{providerID}", auth::remove, "auth.remove"),
    post!("/auth/{providerID}/verify", auth::verify, "auth.verify"),
    get!("/provider/auth", auth::methods, "provider.auth"),
    post!("/provider/{providerID}/oauth/authorize", auth::begin, "provider.oauth.authorize")
        .without_deadline(),
    post!("/provider/{providerID}/oauth/callback", auth::finish, "provider.oauth.callback")
        .without_deadline(),
    get!("/pty/shells", pty::shells, "pty.shells"),
    get!("/pty", pty::list, "pty.list"),
    post!("/pty", pty::create, "pty.create"),
    get!("/pty/{ptyID}", pty::read, "pty.get"),
    put!("/pty/{ptyID}", pty::update, "pty.update"),
    delete!("/pty/{ptyID}", pty::remove, "pty.remove"),
    post!("/pty/{ptyID}/connect-token", pty::ticket, "pty.connectToken"),
    get!("/pty/{ptyID}/connect", pty::connect, "pty.connect").without_deadline(),
    get!("/permission", permission::list, "permission.list"),
    post!("/permission", permission::add, "permission.add"),
    post!("/permission/{requestID}/reply", permission::reply, "permission.reply"),
    post!("/session/{sessionID}/permissions/{permissionID}", permission::respond, "permission.respond"),
    get!("/question", question::list, "question.list"),
    post!("/question", question::answer, "question.reply.alias"),
    post!("/question/{requestID}/reply", question::reply, "question.reply"),
    post!("/question/{requestID}/reject", question::reject, "question.reject"),
];

/// Files and version control.
const FILES: &[Route] = &[
    get!("/file", file::list, "file.list"),
    get!("/file/content", file::content, "file.read"),
    get!("/file/status", file::status, "file.status"),
    get!("/find", file::find_text, "find.text"),
    get!("/find/file", file::find_files, "find.files"),
    get!("/find/symbol", file::find_symbols, "find.symbols"),
    get!("/vcs", vcs::read, "vcs.get"),
    get!("/vcs/status", vcs::status, "vcs.status"),
    get!("/vcs/diff", vcs::diff, "vcs.diff"),
    get!("/vcs/diff/raw", vcs::raw, "vcs.diff.raw"),
    post!("/vcs/apply", vcs::apply, "vcs.apply"),
];

/// Experimental routes, most of them for features that do not exist here.
const EXPERIMENTAL: &[Route] = &[
    get!("/experimental/capabilities", experimental::capabilities, "experimental.capabilities.get"),
    get!("/experimental/sandbox", sandbox::read, "experimental.sandbox.get"),
    get!("/experimental/review", review::request, "experimental.review.request"),
    post!("/experimental/bug", review::bug, "experimental.bug"),
    get!("/experimental/console", experimental::console, "experimental.console.get"),
    get!("/experimental/console/orgs", experimental::orgs, "experimental.console.listOrgs"),
    post!("/experimental/console/switch", experimental::switch_org, "experimental.console.switchOrg"),
    get!("/experimental/tool", experimental::tools, "tool.list"),
    get!("/experimental/tool/ids", experimental::tool_ids, "tool.ids"),
    get!("/experimental/worktree", worktree::list, "worktree.list"),
    post!("/experimental/worktree", worktree::create, "worktree.create").without_deadline(),
    delete!("/experimental/worktree", worktree::remove, "worktree.remove").without_deadline(),
    post!("/experimental/worktree/reset", worktree::reset, "worktree.reset").without_deadline(),
    get!("/experimental/session", experimental::sessions, "experimental.session.list"),
    post!(
        "/experimental/session/{sessionID}/background",
        experimental::background,
        "experimental.session.background",
    ),
    get!("/experimental/resource", mcp::resources, "experimental.resource.list").without_deadline(),
    get!(
        "/experimental/workspace/adapter",
        experimental::workspace_adapters,
        "experimental.workspace.adapter.list"
    ),
    get!("/experimental/workspace", experimental::nothing, "experimental.workspace.list"),
    post!("/experimental/workspace", experimental::no_workspaces, "experimental.workspace.create"),
    post!("/experimental/workspace/sync-list", experimental::done, "experimental.workspace.syncList"),
    get!("/experimental/workspace/status", experimental::nothing, "experimental.workspace.status"),
    delete!("/experimental/workspace/{id}", experimental::no_workspaces, "experimental.workspace.remove"),
    post!("/experimental/workspace/warp", experimental::no_workspaces, "experimental.workspace.warp"),
    post!(
        "/experimental/control-plane/move-session",
        worktree::move_session,
        "experimental.controlPlane.moveSession",
    )
    .without_deadline(),
    post!("/experimental/project/{projectID}/copy", experimental::no_copies, "v2.projectCopy.create"),
    delete!("/experimental/project/{projectID}/copy", experimental::no_copies, "v2.projectCopy.remove"),
    post!("/experimental/project/{projectID}/copy/refresh", experimental::done, "v2.projectCopy.refresh"),
    post!(
        "/experimental/project/{projectID}/copy/generate-name",
        experimental::copy_name,
        "experimental.projectCopy.generateName",
    ),
];

/// The remote control of a terminal client.
const CLIENTS: &[Route] = &[
    post!("/tui/append-prompt", tui::append, "tui.appendPrompt"),
    post!("/tui/open-help", tui::open_help, "tui.openHelp"),
    post!("/tui/open-sessions", tui::open_sessions, "tui.openSessions"),
    post!("/tui/open-themes", tui::open_themes, "tui.openThemes"),
    post!("/tui/open-models", tui::open_models, "tui.openModels"),
    post!("/tui/submit-prompt", tui::submit, "tui.submitPrompt"),
    post!("/tui/clear-prompt", tui::clear, "tui.clearPrompt"),
    post!("/tui/execute-command", tui::execute, "tui.executeCommand"),
    post!("/tui/show-toast", tui::toast, "tui.showToast"),
    post!("/tui/publish", tui::published, "tui.publish"),
    post!("/tui/select-session", tui::select, "tui.selectSession"),
    get!("/tui/control/next", tui::next, "tui.control.next").without_deadline(),
    post!("/tui/control/response", tui::response, "tui.control.response"),
];

/// The v2 API without its sessions. Only the routes that clients call exist.
const V2: &[Route] = &[
    get!("/api/health", api::health, "v2.health.get"),
    get!("/api/location", api::location, "v2.location.get"),
    get!("/api/agent", api::agents, "v2.agent.list"),
    get!("/api/model", api::models, "v2.model.list"),
    get!("/api/provider", api::providers, "v2.provider.list"),
    get!("/api/provider/{providerID}", api::provider, "v2.provider.get"),
    get!("/api/integration", integration::list, "v2.integration.list"),
    get!("/api/integration/{integrationID}", integration::read, "v2.integration.get"),
    post!(
        "/api/integration/{integrationID}/connect/key",
        integration::connect_key,
        "v2.integration.connect.key",
    ),
    post!(
        "/api/integration/{integrationID}/connect/oauth",
        integration::connect,
        "v2.integration.connect.oauth",
    )
    .without_deadline(),
    get!("/api/integration/attempt/{attemptID}", integration::status, "v2.integration.attempt.status"),
    delete!("/api/integration/attempt/{attemptID}", integration::cancel, "v2.integration.attempt.cancel"),
    post!(
        "/api/integration/attempt/{attemptID}/complete",
        integration::complete,
        "v2.integration.attempt.complete",
    )
    .without_deadline(),
    patch!("/api/credential/{credentialID}", integration::rename, "v2.credential.update"),
    delete!("/api/credential/{credentialID}", integration::disconnect, "v2.credential.remove"),
    get!("/api/reference", api::nothing, "v2.reference.list"),
    get!("/api/command", api::commands, "v2.command.list"),
    get!("/api/skill", api::skills, "v2.skill.list"),
    get!("/api/event", event::v2, "v2.event.subscribe").without_deadline(),
    get!("/api/permission/request", pending::permissions, "v2.permission.request.list"),
    get!("/api/permission/saved", pending::saved, "v2.permission.saved.list"),
    delete!("/api/permission/saved/{id}", pending::revoke, "v2.permission.saved.remove"),
    get!("/api/question/request", pending::questions, "v2.question.request.list"),
    get!("/api/pty", terminal::list, "v2.pty.list"),
    post!("/api/pty", terminal::create, "v2.pty.create"),
    get!("/api/pty/{ptyID}", terminal::read, "v2.pty.get"),
    put!("/api/pty/{ptyID}", terminal::update, "v2.pty.update"),
    delete!("/api/pty/{ptyID}", terminal::remove, "v2.pty.remove"),
    post!("/api/pty/{ptyID}/connect-token", terminal::ticket, "v2.pty.connectToken"),
    get!("/api/pty/{ptyID}/connect", pty::connect, "v2.pty.connect").without_deadline(),
    get!("/api/fs/list", file::api_list, "v2.fs.list"),
    get!("/api/fs/find", file::api_find, "v2.fs.find"),
    get!("/api/fs/read/{*path}", file::api_read, "v2.fs.read"),
];

/// The sessions of the v2 API.
const V2_SESSIONS: &[Route] = &[
    get!("/api/session", api::sessions, "v2.session.list"),
    post!("/api/session", api::session::create, "v2.session.create"),
    get!("/api/session/active", api::active, "v2.session.active"),
    get!("/api/session/{sessionID}", api::session, "v2.session.get"),
    post!("/api/session/{sessionID}/agent", api::session::agent, "v2.session.switchAgent"),
    post!("/api/session/{sessionID}/model", api::session::model, "v2.session.switchModel"),
    post!("/api/session/{sessionID}/interrupt", api::session::interrupt, "v2.session.interrupt"),
    post!("/api/session/{sessionID}/wait", api::session::wait, "v2.session.wait").without_deadline(),
    post!("/api/session/{sessionID}/compact", api::session::compact, "v2.session.compact").without_deadline(),
    post!("/api/session/{sessionID}/prompt", message::prompt, "v2.session.prompt"),
    get!("/api/session/{sessionID}/message", message::messages, "v2.session.messages"),
    get!("/api/session/{sessionID}/message/{messageID}", message::one, "v2.session.message"),
    get!("/api/session/{sessionID}/context", message::context, "v2.session.context"),
    get!("/api/session/{sessionID}/history", history::read, "v2.session.history"),
    get!("/api/session/{sessionID}/event", history::follow, "v2.session.events").without_deadline(),
    post!("/api/session/{sessionID}/revert/stage", revert::stage, "v2.session.revert.stage")
        .without_deadline(),
    post!("/api/session/{sessionID}/revert/clear", revert::clear, "v2.session.revert.clear")
        .without_deadline(),
    post!("/api/session/{sessionID}/revert/commit", revert::commit, "v2.session.revert.commit")
        .without_deadline(),
    post!("/api/session/{sessionID}/permission", pending::request_permission, "v2.session.permission.create",),
    get!("/api/session/{sessionID}/permission", pending::permissions_of, "v2.session.permission.list"),
    get!(
        "/api/session/{sessionID}/permission/{requestID}",
        pending::permission_of,
        "v2.session.permission.get",
    ),
    post!(
        "/api/session/{sessionID}/permission/{requestID}/reply",
        pending::reply_permission,
        "v2.session.permission.reply",
    ),
    get!("/api/session/{sessionID}/question", pending::questions_of, "v2.session.question.list"),
    post!("/api/session/{sessionID}/question/{requestID}/reply", pending::reply, "v2.session.question.reply",),
    post!(
        "/api/session/{sessionID}/question/{requestID}/reject",
        pending::reject,
        "v2.session.question.reject",
    ),
];
