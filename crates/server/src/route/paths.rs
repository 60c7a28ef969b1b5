//! Finds the service of a path, which consists of the handlers of its routes and the middleware.
//!
//! A process needs few of the paths: a single run needs five. A service is therefore built for the first request to its
//! path. Building all of them would be a fifth of the instructions of a short run, and its code half of the program's.
//!
//! A fixed name in a path takes precedence over a parameter, and a parameter over the rest of a path. All methods of a
//! path are in one service, so a path with another method is answered with 405.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::get;

use super::page;
use super::table::{Route, table};
use crate::compress::compression;
use crate::guard::{guard, hurry, last};
use crate::state::App;
use crate::trace::trace;
use crate::{Error, auth, error, nodes};

/// The services of all paths.
pub(crate) struct Paths {
    app: App,
    /// One for each row of the table. The first row of a path has the service of the path.
    of_routes: Vec<OnceLock<Router>>,
    of_page: OnceLock<Router>,
    /// The signals for other servers, which are no part of the API.
    of_signals: OnceLock<Router>,
    /// The service of unknown paths.
    of_others: OnceLock<Router>,
}

impl Paths {
    pub(super) fn new(app: App) -> Self {
        let of_routes = table().map(|_| OnceLock::new()).collect();
        let (of_page, of_signals, of_others) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { app, of_routes, of_page, of_signals, of_others }
    }

    /// Returns the service of a path.
    pub(super) fn service(&self, path: &str) -> &Router {
        // The files of the web app are neither in the table nor in the API document.
        if page::is_file(path) {
            let files = || Router::new().route("/", get(page::read)).route("/{*path}", get(page::read));
            return self.of_page.get_or_init(|| self.finish(files()));
        }
        if self.app.nodes.is_some() && path == nodes::signals::PATH {
            let signals = || Router::new().route(nodes::signals::PATH, get(nodes::signals::read));
            return self.of_signals.get_or_init(|| self.finish(signals()));
        }
        let found = find(path).and_then(|(at, route)| Some((self.of_routes.get(at)?, route)));
        let Some((service, route)) = found else {
            return self.of_others.get_or_init(|| self.finish(Router::new()));
        };
        service.get_or_init(|| self.build(route.path))
    }

    /// Builds the service of a path of the table.
    fn build(&self, path: &'static str) -> Router {
        let routes = table().filter(|route| route.path == path);
        let routed = routes.fold(Router::new(), |router, route| {
            let handler = (route.handler)();
            let handler = if route.has_deadline {
                handler.layer(from_fn_with_state(Arc::clone(&self.app), hurry))
            } else {
                handler.layer(from_fn(last))
            };
            let handler = match self.app.nodes {
                Some(_) => {
                    handler.layer(from_fn_with_state((Arc::clone(&self.app), route.reached()), nodes::route))
                }
                None => handler,
            };
            // Before the request is passed on to another server.
            let handler = match &self.app.options.auth {
                Some(_) => {
                    handler.layer(from_fn_with_state((Arc::clone(&self.app), route.rule()), auth::check))
                }
                None => handler,
            };
            let handler =
                if path.starts_with("/api/") { handler.layer(map_response(error::v2)) } else { handler };
            router.route(path, handler)
        });
        self.finish(routed)
    }

    /// Adds what all paths share.
    fn finish(&self, routed: Router<App>) -> Router {
        routed
            .fallback(no_route)
            .method_not_allowed_fallback(no_method)
            .layer(compression())
            .layer(from_fn_with_state(Arc::clone(&self.app), guard))
            .layer(from_fn_with_state(Arc::clone(&self.app), trace))
            .with_state(Arc::clone(&self.app))
    }
}

async fn no_route(request: Request) -> Error {
    Error::NoRoute { method: request.method().to_string(), path: request.uri().path().to_owned() }
}

async fn no_method(request: Request) -> Error {
    Error::NoMethod { method: request.method().to_string(), path: request.uri().path().to_owned() }
}

/// Returns the first row with the template that fits a path best, and its place in the table.
fn find(path: &str) -> Option<(usize, &'static Route)> {
    let mut best: Option<(usize, &Route)> = None;
    for (at, route) in table().enumerate() {
        let is_better = |(_, best): (_, &Route)| ranks(route.path).lt(ranks(best.path));
        if fits(route, path) && best.is_none_or(is_better) {
            best = Some((at, route));
        }
    }
    best
}

/// Whether a path has the form of a route.
fn fits(route: &Route, path: &str) -> bool {
    let (fixed, template) = (&route.path.as_bytes()[..route.fixed_bytes], &route.path[route.fixed_bytes..]);
    let Some(rest) = path.as_bytes().strip_prefix(fixed) else { return false };
    if template.is_empty() {
        return rest.is_empty();
    }
    // The fixed part ends before a parameter, so it ends with a slash.
    let mut names = rest.split(|byte| *byte == b'/');
    for part in template.split('/') {
        let Some(name) = names.next().filter(|name| !name.is_empty()) else { return false };
        match rank(part) {
            Rank::Rest => return true,
            Rank::Fixed if name != part.as_bytes() => return false,
            Rank::Fixed | Rank::Parameter => {}
        }
    }
    names.next().is_none()
}

/// The kind of a part of a template, the most specific one first.
#[derive(PartialEq, PartialOrd)]
enum Rank {
    Fixed,
    Parameter,
    Rest,
}

fn ranks(template: &str) -> impl Iterator<Item = Rank> {
    template.split('/').map(rank)
}

fn rank(part: &str) -> Rank {
    match part.as_bytes() {
        [b'{', b'*', ..] => Rank::Rest,
        [b'{', ..] => Rank::Parameter,
        _ => Rank::Fixed,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        assert_eq!(find(path).map(|(_, route)| route.path), expected, "{path}");
    }

    #[test]
    fn a_fixed_name_takes_precedence() {
        check("/session/status", Some("/session/status"));
        check("/session/statuses", Some("/session/{sessionID}"));
        check("/session/status/message", Some("/session/{sessionID}/message"));
        check("/api/integration/attempt/a", Some("/api/integration/attempt/{attemptID}"));
        check("/api/fs/read/a/b.txt", Some("/api/fs/read/{*path}"));
        check("/api/permission/saved/x", Some("/api/permission/saved/{id}"));
    }

    #[test]
    fn other_paths_are_unknown() {
        for path in [
            "/",
            "",
            "/sessions",
            "/session/",
            "/session//message",
            "/session/a/b",
            "/doc/x",
            "/api/fs/read",
            "x",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn every_route_is_found_by_its_path() {
        for route in table() {
            let parts = route.path.split('/').map(|part| if rank(part) == Rank::Fixed { part } else { "x" });
            check(&parts.collect::<Vec<_>>().join("/"), Some(route.path));
        }
    }

    #[test]
    fn no_two_templates_differ_only_in_names() {
        let mut templates = HashMap::new();
        for route in table() {
            let parts = route.path.split('/').map(|part| if rank(part) == Rank::Fixed { part } else { "{}" });
            let shape = parts.collect::<Vec<_>>().join("/");
            assert_eq!(*templates.entry(shape).or_insert(route.path), route.path);
        }
    }
}
