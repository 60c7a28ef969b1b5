//! The table of all routes. A row says everything about a route: the method, the path, the handler, the operation id,
//! who may call it, which of several servers answers it, what the audit log records, and what the API document says.
//!
//! A row without a rule for users or without a place does not compile. A row is a constant: the service of a handler is
//! made when a request needs it.

use axum::routing::MethodRouter;

use super::Reached;
use crate::auth::rules::{Audit, Need, Rule};
use crate::document::{Kind, Location, Operation, Shape};
use crate::nodes::reach::Reach;
use crate::state::App;

mod files;
mod instances;
mod sessions;
mod v2;

/// A row of the table.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// The number of bytes of the path before its first parameter.
    pub(super) fixed_bytes: usize,
    /// The name of the route in the API document and in the audit log.
    pub(super) operation: &'static str,
    need: Need,
    reach: Reach,
    audit: Audit,
    /// Makes the service of the handler.
    pub(super) handler: fn() -> MethodRouter<App>,
    pub(super) has_deadline: bool,
    shape: Shape,
}

/// What every row must state.
struct Stated {
    method: &'static str,
    path: &'static str,
    operation: &'static str,
    need: Need,
    reach: Reach,
}

impl Route {
    /// Returns a row without a request body, whose reply has no content.
    const fn new(stated: Stated, handler: fn() -> MethodRouter<App>) -> Self {
        let Stated { method, path, operation, need, reach } = stated;
        let mut fixed_bytes = 0;
        while fixed_bytes < path.len() && path.as_bytes()[fixed_bytes] != b'{' {
            fixed_bytes += 1;
        }
        // All methods but GET change something.
        let audit = if matches!(method.as_bytes(), b"GET") { Audit::None } else { Audit::Request };
        let shape = Shape::NOTHING;
        Self { method, path, fixed_bytes, operation, need, reach, audit, handler, has_deadline: true, shape }
    }

    /// Returns what its place among several servers depends on.
    pub(super) const fn reached(&self) -> Reached {
        Reached { path: self.path, reach: self.reach, has_deadline: self.has_deadline }
    }

    /// Returns the rule for users.
    pub(super) const fn rule(&self) -> Rule {
        Rule { need: self.need, audit: self.audit.entry(self.operation) }
    }

    /// Returns what the API document says about it.
    pub(super) const fn described(&self) -> Operation {
        Operation { id: self.operation, method: self.method, path: self.path, shape: self.shape }
    }

    /// The route may take longer than the deadline of requests: it streams, or waits for a model or a user.
    const fn without_deadline(self) -> Self {
        Self { has_deadline: false, ..self }
    }

    /// The route reads, and requests are recorded in the audit log nevertheless.
    const fn recorded(self) -> Self {
        Self { audit: Audit::Request, ..self }
    }

    /// The route changes something, and its handler writes the entry, which says more.
    const fn recorded_by_handler(self) -> Self {
        Self { audit: Audit::Handler, ..self }
    }

    /// The route has a method for changes and changes nothing, for this reason.
    const fn unchanging(self, reason: &'static str) -> Self {
        Self { audit: Audit::Unchanging(reason), ..self }
    }

    /// The query may name a directory or a workspace.
    const fn in_directory(self) -> Self {
        self.shaped(Shape { location: Location::Directory, ..self.shape })
    }

    /// The query may have a `location` object.
    const fn at_location(self) -> Self {
        self.shaped(Shape { location: Location::Object, ..self.shape })
    }

    /// Other parameters of the query, as `name:type` or `name?:type`, joined by `&`.
    const fn query(self, query: &'static str) -> Self {
        self.shaped(Shape { query, ..self.shape })
    }

    /// The type of the request body.
    const fn takes(self, body: &'static str) -> Self {
        self.shaped(Shape { body: Some(body), ..self.shape })
    }

    /// The type of the reply, as JSON.
    const fn returns(self, reply: &'static str) -> Self {
        self.replies(Kind::Json, reply)
    }

    /// The type of each event of the reply.
    const fn streams(self, event: &'static str) -> Self {
        self.replies(Kind::Events, event)
    }

    /// The reply is a file.
    const fn returns_bytes(self, reply: &'static str) -> Self {
        self.replies(Kind::Bytes, reply)
    }

    /// The reply is text.
    const fn returns_text(self, reply: &'static str) -> Self {
        self.replies(Kind::Text, reply)
    }

    /// The reply is status 204.
    const fn returns_nothing(self) -> Self {
        self.shaped(Shape { status: "204", ..self.shape })
    }

    /// The statuses of errors.
    const fn fails(self, errors: &'static [u16]) -> Self {
        self.shaped(Shape { errors, ..self.shape })
    }

    const fn replies(self, kind: Kind, reply: &'static str) -> Self {
        self.shaped(Shape { kind, reply: Some(reply), ..self.shape })
    }

    const fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }
}

/// Declares a macro that makes a row: path, handler, operation id, rule for users, place.
macro_rules! method {
    ($d:tt $method:ident, $name:literal) => {
        macro_rules! $method {
            ($d path:literal, $d handler:expr, $d operation:literal, $d need:expr, $d reach:expr $d (,)?) => {
                $crate::route::table::Route::new(
                    $crate::route::table::Stated {
                        method: $name,
                        path: $d path,
                        operation: $d operation,
                        need: $d need,
                        reach: $d reach,
                    },
                    || axum::routing::$method($d handler),
                )
            };
        }
        use $method;
    };
}

method!($ get, "GET");
method!($ post, "POST");
method!($ put, "PUT");
method!($ patch, "PATCH");
method!($ delete, "DELETE");

/// All routes.
pub(super) fn table() -> impl Iterator<Item = &'static Route> {
    [
        instances::INSTANCES,
        sessions::SESSIONS,
        files::FILES,
        files::EXPERIMENTAL,
        files::CLIENTS,
        v2::V2,
        v2::V2_SESSIONS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::nodes::reach::Holder;

    #[test]
    fn every_operation_and_every_method_of_a_path_has_one_row() {
        let (mut operations, mut routes) = (BTreeSet::new(), BTreeSet::new());
        for route in table() {
            assert!(operations.insert(route.operation), "`{}` has two rows", route.operation);
            assert!(
                routes.insert((route.method, route.path)),
                "{} {} has two rows",
                route.method,
                route.path
            );
        }
    }

    #[test]
    fn only_changes_are_left_out_of_the_audit_log_with_a_reason() {
        for Route { method, operation, audit, need, .. } in table() {
            match audit {
                Audit::None => assert_eq!(*method, "GET", "{operation}"),
                Audit::Request => {}
                Audit::Handler => {
                    assert!(matches!(need, Need::Permission | Need::Question | Need::Member), "{operation}");
                }
                Audit::Unchanging(reason) => {
                    assert!(*method != "GET" && !reason.is_empty(), "{operation}");
                }
            }
        }
    }

    #[test]
    fn a_path_with_a_session_has_a_rule_about_it() {
        for Route { operation, path, need, .. } in table() {
            let is_about_ids = matches!(need, Need::Read | Need::Write | Need::Permission | Need::Question);
            if path.contains("{sessionID}") {
                assert!(is_about_ids || *need == Need::Admin, "{operation}");
            } else {
                assert_eq!(is_about_ids, path.contains("{requestID}"), "{operation}");
            }
        }
    }

    #[test]
    fn a_path_names_ids_in_a_way_that_the_check_knows() {
        for Route { path, need, .. } in table() {
            let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
            match need {
                Need::Read | Need::Write => assert!(names.clone().any(|name| name == "sessionID"), "{path}"),
                Need::Permission | Need::Question => {
                    assert!(names.clone().any(|name| matches!(name, "requestID" | "permissionID")), "{path}");
                }
                Need::Anyone | Need::Member | Need::Admin | Need::Terminal | Need::Filtered => {}
            }
        }
    }

    #[test]
    fn a_place_finds_in_the_request_what_it_depends_on() {
        for Route { method, path, reach, shape, operation, .. } in table() {
            match reach {
                Reach::Session | Reach::SessionOrHere => assert!(path.contains("{sessionID}"), "{operation}"),
                Reach::Holder(Holder::Terminal) => assert!(path.contains("{ptyID}"), "{operation}"),
                Reach::Holder(Holder::Question) => assert!(path.contains("{requestID}"), "{operation}"),
                Reach::Holder(Holder::QuestionInBody) => assert!(shape.body.is_some(), "{operation}"),
                Reach::Everywhere => assert_eq!(*method, "GET", "{operation}"),
                Reach::Directory => assert!(!path.contains("{sessionID}"), "{operation}"),
                Reach::Here => {}
            }
        }
    }
}
