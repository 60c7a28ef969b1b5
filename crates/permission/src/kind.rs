//! The kinds of permissions.

use std::fmt;
use std::ops::Deref;

/// The kind of a permission: the key that rules name.
///
/// A name is parsed once, where a tool, a plugin or a server of tools provides it. `Display` and [`Permission::as_str`]
/// return the key as rules and clients write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    /// Read a file.
    Read,
    /// Write a file.
    Edit,
    /// Run a command.
    Bash,
    /// Reach a directory outside of the worktree.
    ExternalDirectory,
    /// Connect to a host.
    Network,
    /// Leave the sandbox, or use the network of the machine.
    Sandbox,
    /// Call another agent.
    Task,
    /// Load a skill.
    Skill,
    /// Fetch an address.
    WebFetch,
    /// Search the web.
    WebSearch,
    /// Find files by name.
    Glob,
    /// Find files by content.
    Grep,
    /// List a directory.
    List,
    /// Ask a language server.
    Lsp,
    /// Ask the user a question.
    Question,
    /// Write the list of tasks.
    TodoWrite,
    /// Repeat the same call several times.
    DoomLoop,
    /// Start to plan.
    PlanEnter,
    /// End planning.
    PlanExit,
    /// Any other key: a tool of a server or of a plugin by its name, or a key that only rules know.
    Other(String),
}

/// Every kind that has its own variant.
static KINDS: [Permission; 19] = [
    Permission::Read,
    Permission::Edit,
    Permission::Bash,
    Permission::ExternalDirectory,
    Permission::Network,
    Permission::Sandbox,
    Permission::Task,
    Permission::Skill,
    Permission::WebFetch,
    Permission::WebSearch,
    Permission::Glob,
    Permission::Grep,
    Permission::List,
    Permission::Lsp,
    Permission::Question,
    Permission::TodoWrite,
    Permission::DoomLoop,
    Permission::PlanEnter,
    Permission::PlanExit,
];

impl Permission {
    /// The key in rules.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Bash => "bash",
            Self::ExternalDirectory => "external_directory",
            Self::Network => "network",
            Self::Sandbox => "sandbox",
            Self::Task => "task",
            Self::Skill => "skill",
            Self::WebFetch => "webfetch",
            Self::WebSearch => "websearch",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::List => "list",
            Self::Lsp => "lsp",
            Self::Question => "question",
            Self::TodoWrite => "todowrite",
            Self::DoomLoop => "doom_loop",
            Self::PlanEnter => "plan_enter",
            Self::PlanExit => "plan_exit",
            Self::Other(name) => name,
        }
    }

    /// Returns every kind that has its own variant.
    pub fn kinds() -> &'static [Self] {
        &KINDS
    }
}

impl From<&str> for Permission {
    fn from(key: &str) -> Self {
        let known = KINDS.iter().find(|kind| kind.as_str() == key).cloned();
        known.unwrap_or_else(|| Self::Other(key.to_owned()))
    }
}

impl From<&String> for Permission {
    fn from(key: &String) -> Self {
        Self::from(key.as_str())
    }
}

impl From<String> for Permission {
    fn from(key: String) -> Self {
        Self::from(key.as_str())
    }
}

impl From<&Self> for Permission {
    fn from(kind: &Self) -> Self {
        kind.clone()
    }
}

impl From<Permission> for String {
    fn from(kind: Permission) -> Self {
        kind.as_str().to_owned()
    }
}

impl Deref for Permission {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for Permission {
    fn eq(&self, key: &str) -> bool {
        self.as_str() == key
    }
}

impl PartialEq<&str> for Permission {
    fn eq(&self, key: &&str) -> bool {
        self.as_str() == *key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_parsed_from_its_key() {
        for kind in Permission::kinds() {
            assert_eq!(&Permission::from(kind.as_str()), kind);
        }
        assert_eq!(
            Permission::from("github_create_issue"),
            Permission::Other("github_create_issue".to_owned())
        );
        assert_eq!(Permission::from("Bash"), Permission::Other("Bash".to_owned()), "keys have one spelling");
    }
}
