//! The number of words that identify the action of a command.
//!
//! `git commit` is two words, `npm run build` three, `ls` one. The reply "always" to a permission request
//! covers every command that starts with these words.

/// Commands whose first `n` words identify the action. The longest entry that matches is used.
const WORDS: &[(usize, &[&str])] = &[
    (
        2,
        &[
            "apt",
            "apt-get",
            "aws",
            "az",
            "bazel",
            "brew",
            "bun",
            "bundle",
            "cargo",
            "cdk",
            "composer",
            "conda",
            "deno",
            "docker",
            "dotnet",
            "firebase",
            "flutter",
            "gcloud",
            "gem",
            "gh",
            "git",
            "glab",
            "go",
            "gradle",
            "gradlew",
            "heroku",
            "helm",
            "hg",
            "ip",
            "jj",
            "just",
            "kubectl",
            "launchctl",
            "make",
            "meson",
            "minikube",
            "mix",
            "mvn",
            "nix",
            "npm",
            "npx",
            "nvm",
            "pip",
            "pip3",
            "pipenv",
            "pipx",
            "pnpm",
            "podman",
            "poetry",
            "pulumi",
            "pyenv",
            "rails",
            "rake",
            "rustup",
            "sbt",
            "serverless",
            "svn",
            "swift",
            "systemctl",
            "terraform",
            "tofu",
            "turbo",
            "uv",
            "uvx",
            "vagrant",
            "vercel",
            "wrangler",
            "xcodebuild",
            "yarn",
            "zig",
        ],
    ),
    (
        3,
        &[
            "aws s3",
            "bun run",
            "bun x",
            "cargo add",
            "cargo run",
            "conda env",
            "deno task",
            "docker builder",
            "docker compose",
            "docker container",
            "docker image",
            "docker network",
            "docker volume",
            "gcloud compute",
            "gh api",
            "gh issue",
            "gh pr",
            "gh repo",
            "gh run",
            "git bisect",
            "git config",
            "git remote",
            "git stash",
            "git submodule",
            "git worktree",
            "kubectl config",
            "kubectl rollout",
            "nix flake",
            "npm exec",
            "npm run",
            "pnpm dlx",
            "pnpm exec",
            "pnpm run",
            "podman container",
            "podman image",
            "poetry run",
            "rustup target",
            "rustup toolchain",
            "swift package",
            "terraform workspace",
            "uv pip",
            "uv run",
            "yarn dlx",
            "yarn run",
        ],
    ),
];

/// The words that identify the action, or `None` if one of them is not a plain word.
pub(super) fn prefix(words: &[Option<String>]) -> Option<String> {
    let known: Vec<&str> = words.iter().map_while(|word| word.as_deref()).collect();
    let first = known.first()?;
    let count = (1..=2).rev().find_map(|count| {
        let start = known.get(..count)?.join(" ");
        WORDS.iter().find(|(_, names)| names.contains(&start.as_str())).map(|(arity, _)| *arity)
    });
    let wanted = known.iter().take(count.unwrap_or(1)).copied().collect::<Vec<_>>();
    // `git -C elsewhere` identifies no action, and "git -C *" would allow every one.
    let plain = |word: &&str| !word.starts_with('-') && !word.contains(['*', ' ', '\n', '?']);
    let whole = words.len() <= wanted.len() || wanted.len() == count.unwrap_or(1);
    (!first.is_empty() && whole && wanted.iter().all(plain)).then(|| wanted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_action_are_found() {
        let cases = [
            ("ls src", Some("ls")),
            ("git commit -m x", Some("git commit")),
            ("git", Some("git")),
            ("git -C elsewhere log", None),
            ("npm run build", Some("npm run build")),
            ("npm run", Some("npm run")),
            ("docker compose up -d", Some("docker compose up")),
            ("git $X", None),
            ("$X y", None),
            ("", None),
        ];
        for (line, expected) in cases {
            let words: Vec<Option<String>> = line
                .split_whitespace()
                .map(|word| (!word.starts_with('$')).then(|| word.to_owned()))
                .collect();
            assert_eq!(prefix(&words).as_deref(), expected, "{line}");
        }
    }
}
