//! The filter for files that searches find: the rules of the `read` permission.

use std::path::Path;
use std::sync::Arc;

use codewright_workspace::{Access, Held, Judge, Node, Place, Withheld, Workspace, has_namesake};

use crate::ToolError;
use crate::ask::file_patterns;

/// Decides about a file by its path relative to the worktree, like the rules about `read`.
#[derive(Clone)]
pub struct ReadRules(Arc<Decide>);

type Decide = dyn Fn(&str, Namesake) -> Access + Send + Sync;

/// Whether another file has the normal form of a file's name. Rules that allow by normal form then mean that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namesake {
    /// The name is the only one.
    None,
    /// Another file has the name.
    Exists,
}

impl Namesake {
    /// Looks for the namesake of a file without links in its path.
    pub(crate) fn of(real: &Path) -> Self {
        if has_namesake(real) { Self::Exists } else { Self::None }
    }
}

impl ReadRules {
    /// Calls `decide` for each path, from several threads. It must be fast.
    pub fn new(decide: impl Fn(&str, Namesake) -> Access + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Allows every file.
    #[must_use]
    pub fn open() -> Self {
        Self::new(|_, _| Access::Open)
    }

    /// Returns the decision for files in a directory that a search walks through.
    ///
    /// A file is judged by its real path, and also by its path through the link if the directory was named by
    /// one.
    #[must_use]
    pub fn below(&self, workspace: &Workspace, root: &Place) -> Judge {
        let (rules, workspace, root) = (self.clone(), workspace.clone(), root.clone());
        let is_linked = root.path != root.real;
        Judge::new(move |found| {
            let namesake = Namesake::of(found);
            let real = rules.decide(&workspace.real_title(found), namesake);
            let named = found.strip_prefix(&root.real).ok().filter(|_| is_linked);
            let named = named.map(|below| rules.decide(&workspace.title(&root.path.join(below)), namesake));
            strictest(real, named.unwrap_or(Access::Open))
        })
    }

    /// Decides about one file, after following its links.
    pub(crate) fn access(&self, workspace: &Workspace, path: &Path) -> Access {
        let Ok(place) = workspace.resolve(path) else { return Access::Denied };
        self.access_of(workspace, &place)
    }

    /// Decides about one file whose links were followed.
    pub(crate) fn access_of(&self, workspace: &Workspace, place: &Place) -> Access {
        let patterns = file_patterns(workspace, place);
        patterns
            .iter()
            .map(|pattern| self.decide(pattern, Namesake::of(&place.real)))
            .fold(Access::Open, strictest)
    }

    fn decide(&self, pattern: &str, namesake: Namesake) -> Access {
        (self.0)(pattern, namesake)
    }
}

fn strictest(a: Access, b: Access) -> Access {
    match (a, b) {
        (Access::Denied, _) | (_, Access::Denied) => Access::Denied,
        (Access::Asks, _) | (_, Access::Asks) => Access::Asks,
        (Access::Open, Access::Open) => Access::Open,
    }
}

/// The kind of an entry, or `None` if it is missing or its parent is not a directory.
pub(crate) fn node(held: &Held) -> Result<Option<Node>, ToolError> {
    match held.status() {
        Ok(status) => Ok(status.map(|status| status.node)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A note about omitted files, or `None` if there are none.
pub(crate) fn remark(withheld: Withheld) -> Option<String> {
    let files = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 file {one}")),
        count => Some(format!("{count} files {many}")),
    };
    let asks = files(withheld.asks, "needs permission to read", "need permission to read");
    let denied = files(withheld.denied, "is denied by a rule", "are denied by a rule");
    let all: Vec<String> = asks.into_iter().chain(denied).collect();
    (!all.is_empty()).then(|| format!("(Left out: {}.)", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remark_counts_both_kinds() {
        for (asks, denied, expected) in [
            (0, 0, None),
            (3, 0, Some("(Left out: 3 files need permission to read.)")),
            (1, 2, Some("(Left out: 1 file needs permission to read, 2 files are denied by a rule.)")),
        ] {
            assert_eq!(remark(Withheld { asks, denied }).as_deref(), expected);
        }
    }
}
