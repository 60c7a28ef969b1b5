//! The names of the servers' tools, as one short text.
//!
//! The text depends only on the names. Every server has one line, and a limit is shared fairly among the lines. Names
//! contain only characters that providers accept, so a server cannot write anything else into the text.

use std::collections::BTreeMap;
use std::sync::Arc;

use codewright_mcp::sanitize;

/// The name of a server and a tool's name for models.
pub(crate) type Named = (Arc<str>, String);

/// The longest prefix of a line.
const MAX_PREFIX_BYTES: usize = 64;
/// The room for the end of a line that is cut.
const REST_BYTES: usize = 24;

/// One server.
struct Line<'a> {
    prefix: String,
    names: Vec<&'a str>,
}

/// Returns a line for each server: the prefix of its tools, and the rest of their names.
pub(crate) fn lines(named: &[Named], limit: usize) -> String {
    let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (server, name) in named {
        servers.entry(server).or_default().push(name);
    }
    let lines: Vec<_> = servers.into_iter().map(|(server, names)| Line::new(server, names)).collect();
    let shares = shares(lines.iter().map(|line| line.text(usize::MAX).len() + 1).collect(), limit);
    let mut text = String::new();
    for (at, (line, share)) in lines.iter().zip(&shares).enumerate() {
        let line = line.text(share.saturating_sub(1));
        if text.len() + line.len() > limit {
            text.push_str(&format!("… and {} more servers\n", lines.len() - at));
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

impl<'a> Line<'a> {
    fn new(server: &str, mut names: Vec<&'a str>) -> Self {
        let mut prefix = sanitize(server);
        prefix.truncate(MAX_PREFIX_BYTES);
        prefix.push('_');
        names.sort_unstable();
        Self { prefix, names }
    }

    /// The line with as many names as fit.
    fn text(&self, limit: usize) -> String {
        let Self { prefix, names } = self;
        let head = format!("{prefix} ({}): ", names.len());
        let short: Vec<_> = names.iter().map(|name| name.strip_prefix(prefix).unwrap_or(name)).collect();
        let whole = format!("{head}{}", short.join(", "));
        if whole.len() <= limit {
            return whole;
        }
        let mut text = head;
        for (at, name) in short.iter().enumerate() {
            if text.len() + name.len() + REST_BYTES > limit {
                text.push_str(&format!("… {} more", short.len() - at));
                break;
            }
            text.push_str(name);
            text.push_str(", ");
        }
        text
    }
}

/// Returns the size of each line: its own, or an equal share of what the short ones leave.
fn shares(sizes: Vec<usize>, limit: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| sizes[*at]);
    let mut shares = vec![0; sizes.len()];
    let mut left = limit;
    for (done, at) in order.iter().enumerate() {
        let share = sizes[*at].min(left / (sizes.len() - done));
        shares[*at] = share;
        left -= share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(servers: &[(&str, usize)]) -> Vec<Named> {
        let names = |(server, count): &(&str, usize)| {
            let server: Arc<str> = (*server).into();
            let prefix = sanitize(&server);
            (0..*count).map(|number| (server.clone(), format!("{prefix}_tool-{number}"))).collect::<Vec<_>>()
        };
        servers.iter().flat_map(names).collect()
    }

    #[test]
    fn every_server_has_a_line_in_a_fixed_order() {
        let mut all = named(&[("b b", 2), ("a", 1)]);
        let text = lines(&all, 1000);
        assert_eq!(text, "a_ (1): tool-0\nb_b_ (2): tool-0, tool-1\n");
        all.reverse();
        assert_eq!(lines(&all, 1000), text);
        assert_eq!(lines(&[], 1000), "");
    }

    #[test]
    fn a_limit_is_shared_fairly() {
        let all = named(&[("big", 500), ("small", 3), ("other", 500)]);
        let text = lines(&all, 1000);
        assert!(text.len() <= 1000 && text.len() > 900, "{}", text.len());
        assert!(text.contains("small_ (3): tool-0, tool-1, tool-2\n"), "{text}");
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("big_ (500)").ends_with(" more") && line("other_ (500)").ends_with(" more"), "{text}");
        let many: Vec<_> = (0..200).map(|number| format!("{}{number}", "x".repeat(150))).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), 50)).collect();
        assert!(lines(&named(&many), 3000).len() < 3100);
    }
}
