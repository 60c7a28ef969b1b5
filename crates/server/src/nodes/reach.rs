//! Where a route is answered, if several servers share a database.

/// The servers that can answer a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Every server: the answer is in the store, or about the server itself.
    Here,
    /// The owner of the session in the path, or a server that can work in its directory.
    Session,
    /// The same, but the receiving server if there is none.
    SessionOrHere,
    /// A server that can work in the directory that the request names; the receiving one if it can.
    Directory,
    /// All servers. The answers are joined.
    Everywhere,
    /// The server that has it.
    Holder(Holder),
}

/// What only one server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The terminal in the path.
    Terminal,
    /// The question in the path.
    Question,
    /// The question in the body.
    QuestionInBody,
}

/// Changes of a session that only need the store.
const STORED: &[&str] = &[
    "session.update",
    "permission.respond",
    "v2.session.permission.reply",
    "session.share",
    "session.unshare",
    "users.access",
];

/// Operations of a session that are possible without its directory.
const WITHOUT_DIRECTORY: &[&str] = &["session.delete", "session.abort", "v2.session.interrupt"];

/// Reads of a session whose answer only its owner has.
const OF_OWNER: &[&str] = &["v2.session.question.list"];

/// Lists whose items are in the memory of the servers.
const LISTS: &[&str] = &[
    "session.status",
    "question.list",
    "pty.list",
    "v2.session.active",
    "v2.question.request.list",
    "v2.pty.list",
];

/// The beginnings of the operations that every server answers: about itself, its user or the whole store.
const OWN: &[&str] = &[
    "doc.",
    "global.",
    "app.log",
    "auth.",
    "provider.auth",
    "provider.oauth",
    "permission.",
    "project.list",
    "project.update",
    "project.directories",
    "pty.shells",
    "sync.",
    "trust.list",
    "trust.remove",
    "tui.",
    "users.",
    "experimental.workspace",
    "experimental.console",
    "experimental.session.list",
    "v2.credential",
    "v2.event",
    "v2.health",
    "v2.integration",
    "v2.permission",
    "v2.projectCopy",
    "v2.reference",
    "v2.session.list",
];

/// Returns where a route is answered. `path` is its template.
pub(crate) fn of(method: &str, path: &str, operation: &str) -> Reach {
    if LISTS.contains(&operation) {
        return Reach::Everywhere;
    }
    if path.contains("{sessionID}") {
        return match operation {
            stored if STORED.contains(&stored) => Reach::Here,
            free if WITHOUT_DIRECTORY.contains(&free) => Reach::SessionOrHere,
            _ if method == "GET" && !OF_OWNER.contains(&operation) => Reach::Here,
            _ => Reach::Session,
        };
    }
    if path.contains("{ptyID}") {
        return Reach::Holder(Holder::Terminal);
    }
    match operation {
        "question.reply" | "question.reject" => Reach::Holder(Holder::Question),
        "question.reply.alias" => Reach::Holder(Holder::QuestionInBody),
        own if OWN.iter().any(|start| own.starts_with(start)) => Reach::Here,
        _ => Reach::Directory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(route: &str, operation: &str, expected: Reach) {
        let (method, path) = route.split_once(' ').unwrap();
        assert_eq!(of(method, path, operation), expected, "{route}");
    }

    #[test]
    fn routes_are_answered_where_the_answer_is() {
        use Reach::{Directory, Everywhere, Here, Session, SessionOrHere};
        check("GET /session/{sessionID}/message", "session.messages", Here);
        check("PATCH /session/{sessionID}", "session.update", Here);
        check("POST /session/{sessionID}/message", "session.prompt", Session);
        check("POST /session/{sessionID}/shell", "session.shell", Session);
        check("POST /session/{sessionID}/revert", "session.revert", Session);
        check("POST /session/{sessionID}/abort", "session.abort", SessionOrHere);
        check("DELETE /session/{sessionID}", "session.delete", SessionOrHere);
        check("POST /session/{sessionID}/permissions/{permissionID}", "permission.respond", Here);
        check("POST /permission/{requestID}/reply", "permission.reply", Here);
        check("GET /api/session/{sessionID}/question", "v2.session.question.list", Session);
        check("POST /question/{requestID}/reply", "question.reply", Reach::Holder(Holder::Question));
        check("GET /pty/{ptyID}/connect", "pty.connect", Reach::Holder(Holder::Terminal));
        check("GET /pty", "pty.list", Everywhere);
        check("POST /pty", "pty.create", Directory);
        check("GET /session/status", "session.status", Everywhere);
        check("GET /session", "session.list", Directory);
        check("GET /file/content", "file.read", Directory);
        check("GET /event", "event.subscribe", Directory);
        check("GET /global/event", "global.event", Here);
        check("PUT /auth/{providerID}", "auth.set", Here);
    }
}
