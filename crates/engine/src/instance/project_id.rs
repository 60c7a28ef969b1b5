//! The id of a project: the name of the first commit of its repository.
//!
//! The id identifies a project and proves nothing: anyone who has a commit can build a repository that starts with it.
//! Approvals are therefore bound to the directory too.

use std::path::Path;
use std::time::Duration;

use codewright_config::{Dirs, Env};
use codewright_proto::ProjectId;
use codewright_workspace::git::{Call, Git};

/// The deadline of the search for the first commit, which runs once for each repository.
const GIT_DEADLINE: Duration = Duration::from_secs(5);
/// The lengths of a commit's name, in SHA-1 and in SHA-256.
const NAME_DIGITS: [usize; 2] = [40, 64];

/// Returns git for the user of this program.
pub(super) fn git(env: &Env, dirs: &Dirs) -> Git {
    let config_home = dirs.config.parent().unwrap_or(&dirs.config);
    Git::new(env.get(codewright_config::env::PATH), &dirs.home, config_home)
}

/// Returns the project of a repository; `None` if git or a commit is missing, or if the search exceeds its deadline.
pub(super) async fn first_commit(env: &Env, dirs: &Dirs, worktree: &Path) -> Option<ProjectId> {
    let repository = git(env, dirs).open(worktree).await.ok()?;
    let args = ["rev-list", "--max-parents=0", "HEAD"];
    let listed =
        repository.output(Call { args: &args, input: None, deadline: GIT_DEADLINE }).await.ok()??;
    oldest(&String::from_utf8(listed).ok()?)
}

/// Returns the first of the commits without parents, ordered by name.
fn oldest(listed: &str) -> Option<ProjectId> {
    let roots = listed.lines().map(str::trim).filter(|line| is_name(line));
    roots.min().map(|root| ProjectId(root.into()))
}

/// Reports whether a text is the name of a commit. Directories are named after it, and other ids have another form.
fn is_name(text: &str) -> bool {
    NAME_DIGITS.contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_commit_is_an_id() {
        let (first, second) = ("1".repeat(40), "2".repeat(40));
        let id = |text: &str| oldest(text).map(|id| id.as_str().to_owned());
        assert_eq!(id(&format!("{second}\n{first}\n")), Some(first.clone()));
        assert_eq!(id(&"a".repeat(64)), Some("a".repeat(64)));
        for text in
            ["", "global", "../../etc", &"g".repeat(40), &"1".repeat(39), &"1".repeat(41), &"A".repeat(40)]
        {
            assert_eq!(id(text), None, "{text}");
        }
    }
}
