//! What a request says in its address.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986, as `encodeURIComponent` does.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Which sessions are listed; the default is all of the directory, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// Sessions of this directory alone; else those of the client's directory or the server's.
    pub directory: Option<String>,
    /// Leave out sessions that were started by another.
    pub roots: bool,
    /// All sessions of the project, wherever in it they work.
    pub whole_project: bool,
    /// Sessions in this directory or below it, relative to the worktree.
    pub path: Option<String>,
    /// Changed at or after, in milliseconds since 1970.
    pub start: Option<u64>,
    /// Whose title holds this text.
    pub search: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl SessionQuery {
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut push = |name, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
        push("directory", self.directory.clone());
        push("roots", self.roots.then(|| "true".to_owned()));
        push("scope", self.whole_project.then(|| "project".to_owned()));
        push("path", self.path.clone());
        push("start", self.start.map(|start| start.to_string()));
        push("search", self.search.clone());
        push("limit", self.limit.map(|limit| limit.to_string()));
        pairs
    }
}

/// Escapes a value for a query or a header.
pub(crate) fn escape(value: &str) -> String {
    utf8_percent_encode(value, ESCAPED).to_string()
}

/// Appends a query to a path.
pub(crate) fn with_query(path: &str, pairs: &[(&str, String)]) -> String {
    let mut address = path.to_owned();
    for (at, (name, value)) in pairs.iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        address.push_str(&escape(value));
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped_and_leaves_out_what_is_absent() {
        let query = SessionQuery {
            directory: Some("/a b/ä&c".to_owned()),
            roots: true,
            limit: Some(2),
            ..SessionQuery::default()
        };
        assert_eq!(
            with_query("/session", &query.pairs()),
            "/session?directory=%2Fa%20b%2F%C3%A4%26c&roots=true&limit=2"
        );
        assert_eq!(with_query("/session", &SessionQuery::default().pairs()), "/session");
    }
}
