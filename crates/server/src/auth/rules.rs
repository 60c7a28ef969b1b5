//! The rule of each route, by its operation id.
//!
//! A route without a row is closed for users, and a test fails. The paths that name a session say so with `{sessionID}`;
//! the rules `Read`, `Write`, `Permission` and `Question` are only for paths with ids.

use http::Method;

/// What a route requires of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A user of any role. The answer says nothing about sessions.
    Anyone,
    /// A user who may work. Handlers check the sessions that a body names.
    Member,
    /// An administrator: what affects other users, or runs with the rights of the server's account.
    Admin,
    /// An administrator, or the holder of a ticket that an administrator got for the terminal.
    Terminal,
    /// A user of any role. The handler leaves out what the user may not see.
    Filtered,
    /// A user who may read the session in the path.
    Read,
    /// A user who may work in the session in the path.
    Write,
    /// A user who may work in the session of the permission request in the path.
    Permission,
    /// A user who may work in the session of the question in the path.
    Question,
}

/// The rule of a route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) need: Need,
    /// The name in the audit log, if requests are recorded.
    pub(crate) audit: Option<&'static str>,
}

/// Returns the rule of the route with an operation id, or `None` if the table has no rule for it.
///
/// Requests with a method for changes are recorded, except those of the routes that are listed with a reason.
pub(crate) fn need(operation: &'static str, method: &Method) -> Option<Rule> {
    let row = ROUTES.iter().find(|(_, operations)| operations.contains(&operation))?;
    let is_change = *method != Method::GET && *method != Method::HEAD;
    let is_exception = RECORDED_BY_HANDLER.contains(&operation)
        || UNCHANGING.iter().any(|(unchanging, _)| *unchanging == operation);
    let is_recorded = RECORDED_READS.contains(&operation) || (is_change && !is_exception);
    Some(Rule { need: row.0, audit: is_recorded.then_some(operation) })
}

/// The routes by what they require.
const ROUTES: &[(Need, &[&str])] = &[
    (
        Need::Anyone,
        &[
            "doc.get",
            "global.health",
            "global.ready",
            "path.get",
            "project.list",
            "project.current",
            "project.directories",
            "config.get",
            "global.config.get",
            "trust.get",
            "config.providers",
            "provider.list",
            "app.agents",
            "command.list",
            "app.skills",
            "lsp.status",
            "formatter.status",
            "mcp.status",
            "provider.auth",
            "file.list",
            "file.read",
            "file.status",
            "find.text",
            "find.files",
            "find.symbols",
            "vcs.get",
            "vcs.status",
            "vcs.diff",
            "vcs.diff.raw",
            "experimental.capabilities.get",
            "experimental.sandbox.get",
            "experimental.review.request",
            "experimental.console.get",
            "experimental.console.listOrgs",
            "tool.list",
            "tool.ids",
            "worktree.list",
            "experimental.resource.list",
            "experimental.workspace.adapter.list",
            "experimental.workspace.list",
            "experimental.workspace.syncList",
            "experimental.workspace.status",
            "experimental.projectCopy.generateName",
            "sync.start",
            "v2.health.get",
            "v2.location.get",
            "v2.agent.list",
            "v2.model.list",
            "v2.provider.list",
            "v2.provider.get",
            "v2.integration.list",
            "v2.integration.get",
            "v2.reference.list",
            "v2.command.list",
            "v2.skill.list",
            "v2.fs.list",
            "v2.fs.find",
            "v2.fs.read",
            "pty.shells",
            "auth.signIn",
            "auth.signOut",
            "users.me",
            "users.usage",
        ],
    ),
    (
        Need::Member,
        &[
            "app.log",
            "vcs.apply",
            "session.create",
            "v2.session.create",
            "permission.add",
            "experimental.controlPlane.moveSession",
            "question.reply.alias",
        ],
    ),
    (
        Need::Admin,
        &[
            "global.metrics",
            "instance.dispose",
            "global.dispose",
            "global.drain",
            "global.upgrade",
            "app.log.read",
            "experimental.bug",
            "project.initGit",
            "project.update",
            "config.update",
            "config.update.alias",
            "global.config.update",
            "trust.decide",
            "trust.dismiss",
            "trust.list",
            "trust.remove",
            "mcp.add",
            "mcp.remove",
            "mcp.auth.start",
            "mcp.auth.remove",
            "mcp.auth.callback",
            "mcp.auth.authenticate",
            "mcp.connect",
            "mcp.disconnect",
            "sync.steal",
            "sync.replay",
            "sync.history.list",
            "auth.set",
            "auth.remove",
            "auth.verify",
            "provider.oauth.authorize",
            "provider.oauth.callback",
            "pty.list",
            "pty.create",
            "pty.get",
            "pty.update",
            "pty.remove",
            "pty.connectToken",
            "experimental.console.switchOrg",
            "worktree.create",
            "worktree.remove",
            "worktree.reset",
            "experimental.workspace.create",
            "experimental.workspace.remove",
            "experimental.workspace.warp",
            "v2.projectCopy.create",
            "v2.projectCopy.remove",
            "v2.projectCopy.refresh",
            "tui.appendPrompt",
            "tui.openHelp",
            "tui.openSessions",
            "tui.openThemes",
            "tui.openModels",
            "tui.submitPrompt",
            "tui.clearPrompt",
            "tui.executeCommand",
            "tui.showToast",
            "tui.publish",
            "tui.selectSession",
            "tui.control.next",
            "tui.control.response",
            "v2.integration.connect.key",
            "v2.integration.connect.oauth",
            "v2.integration.attempt.status",
            "v2.integration.attempt.cancel",
            "v2.integration.attempt.complete",
            "v2.credential.update",
            "v2.credential.remove",
            "v2.permission.saved.list",
            "v2.permission.saved.remove",
            "v2.pty.list",
            "v2.pty.create",
            "v2.pty.get",
            "v2.pty.update",
            "v2.pty.remove",
            "v2.pty.connectToken",
            "session.shell",
            "users.audit",
        ],
    ),
    (Need::Terminal, &["pty.connect", "v2.pty.connect"]),
    (
        Need::Filtered,
        &[
            "global.event",
            "global.syncEvent",
            "event.subscribe",
            "v2.event.subscribe",
            "session.list",
            "session.status",
            "experimental.session.list",
            "experimental.session.list.alias",
            "permission.list",
            "question.list",
            "v2.permission.request.list",
            "v2.question.request.list",
            "v2.session.list",
            "v2.session.active",
        ],
    ),
    (
        Need::Read,
        &[
            "session.get",
            "session.messages",
            "session.message",
            "session.children",
            "session.todo",
            "session.diff",
            "session.review",
            "session.fork",
            "v2.session.get",
            "v2.session.wait",
            "v2.session.messages",
            "v2.session.message",
            "v2.session.context",
            "v2.session.history",
            "v2.session.events",
            "v2.session.permission.list",
            "v2.session.permission.get",
            "v2.session.question.list",
        ],
    ),
    (
        Need::Write,
        &[
            "session.update",
            "session.delete",
            "session.prompt",
            "session.prompt.alias",
            "session.prompt_async",
            "session.abort",
            "session.deleteMessage",
            "part.delete",
            "part.update",
            "session.share",
            "session.unshare",
            "session.revert",
            "session.unrevert",
            "session.command",
            "session.summarize",
            "session.compact.alias",
            "session.init",
            "experimental.session.background",
            "v2.session.switchAgent",
            "v2.session.switchModel",
            "v2.session.interrupt",
            "v2.session.compact",
            "v2.session.prompt",
            "v2.session.revert.stage",
            "v2.session.revert.clear",
            "v2.session.revert.commit",
            "v2.session.permission.create",
            "users.access",
        ],
    ),
    (Need::Permission, &["permission.reply", "permission.respond", "v2.session.permission.reply"]),
    (
        Need::Question,
        &["question.reply", "question.reject", "v2.session.question.reply", "v2.session.question.reject"],
    ),
];

/// The routes that read and are recorded too.
const RECORDED_READS: &[&str] = &["pty.connect", "v2.pty.connect"];

/// The routes that change something and whose handlers write the entry, which says more.
const RECORDED_BY_HANDLER: &[&str] = &[
    "permission.reply",
    "permission.respond",
    "v2.session.permission.reply",
    "question.reply",
    "question.reject",
    "question.reply.alias",
    "v2.session.question.reply",
    "v2.session.question.reject",
];

/// The routes with a method for changes that change nothing, and why.
const UNCHANGING: &[(&str, &str)] = &[
    ("app.log", "the log itself records it"),
    ("sync.start", "does nothing"),
    ("sync.steal", "always refused"),
    ("sync.history.list", "reads"),
    ("v2.session.wait", "waits"),
    ("experimental.console.switchOrg", "always refused"),
    ("experimental.workspace.create", "always refused"),
    ("experimental.workspace.remove", "always refused"),
    ("experimental.workspace.warp", "always refused"),
    ("experimental.workspace.syncList", "does nothing"),
    ("experimental.projectCopy.generateName", "returns a name"),
    ("v2.projectCopy.create", "always refused"),
    ("v2.projectCopy.remove", "always refused"),
    ("v2.projectCopy.refresh", "does nothing"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::route::operations;

    #[test]
    fn every_route_has_one_rule() {
        let known: BTreeSet<_> = operations().into_iter().map(|(operation, ..)| operation).collect();
        let mut ruled = BTreeSet::new();
        for operation in ROUTES.iter().flat_map(|(_, operations)| *operations) {
            assert!(ruled.insert(*operation), "`{operation}` has two rules");
        }
        let missing: Vec<_> = known.difference(&ruled).collect();
        assert!(missing.is_empty(), "decide who may use these routes: {missing:?}");
        assert!(ruled.difference(&known).next().is_none(), "{:?}", ruled.difference(&known));
    }

    #[test]
    fn every_route_that_changes_something_is_recorded() {
        let exceptions: Vec<_> = RECORDED_BY_HANDLER
            .iter()
            .copied()
            .chain(UNCHANGING.iter().map(|(operation, _)| *operation))
            .collect();
        let all = operations();
        for exception in exceptions.iter().chain(RECORDED_READS) {
            assert!(all.iter().any(|(operation, ..)| operation == exception), "`{exception}` is unknown");
        }
        for (operation, method, _) in all {
            let rule = need(operation, &Method::from_bytes(method.as_bytes()).unwrap()).unwrap();
            let expected =
                RECORDED_READS.contains(&operation) || (method != "GET" && !exceptions.contains(&operation));
            assert_eq!(rule.audit.is_some(), expected, "{method} {operation}");
            let changes_as_handler = RECORDED_BY_HANDLER.contains(&operation);
            assert!(
                !changes_as_handler || matches!(rule.need, Need::Permission | Need::Question | Need::Member)
            );
        }
    }

    #[test]
    fn a_path_with_a_session_has_a_rule_about_it() {
        for (operation, _, path) in operations() {
            let need = need(operation, &Method::GET).unwrap().need;
            let is_about_ids = matches!(need, Need::Read | Need::Write | Need::Permission | Need::Question);
            if path.contains("{sessionID}") {
                assert!(is_about_ids || need == Need::Admin, "{operation}");
            } else {
                let has_request = path.contains("{requestID}");
                assert_eq!(is_about_ids, has_request, "{operation}");
            }
        }
    }

    #[test]
    fn a_path_names_ids_in_a_way_that_the_check_knows() {
        for (operation, _, path) in operations() {
            let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
            match need(operation, &Method::GET).unwrap().need {
                Need::Read | Need::Write => assert!(names.clone().any(|name| name == "sessionID"), "{path}"),
                Need::Permission | Need::Question => {
                    assert!(names.clone().any(|name| matches!(name, "requestID" | "permissionID")), "{path}");
                }
                Need::Anyone | Need::Member | Need::Admin | Need::Terminal | Need::Filtered => {}
            }
        }
    }
}
