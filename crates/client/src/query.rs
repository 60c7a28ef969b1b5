//! The query of a request.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986, as `encodeURIComponent` does.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Selects sessions. The default selects all sessions of the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// Only sessions of this directory. The default is the client's directory, or else the server's.
    pub directory: Option<String>,
    /// Exclude sessions that were started by another session.
    pub roots: bool,
    /// Include all sessions of the project, in every directory.
    pub whole_project: bool,
    /// Only sessions in this directory or below it, relative to the worktree.
    pub path: Option<String>,
    /// Only sessions of this directory and of those below it, without other worktrees. Servers of other versions ignore it.
    pub below: Option<String>,
    /// Only sessions that changed at or after this time, in milliseconds since 1970.
    pub start: Option<u64>,
    /// Only sessions whose title contains this text.
    pub search: Option<String>,
    /// The maximum number of sessions.
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
        push("below", self.below.clone());
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
    fn a_query_is_escaped_and_omits_missing_values() {
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
