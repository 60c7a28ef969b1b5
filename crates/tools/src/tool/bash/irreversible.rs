//! Commands that leave the machine or cannot be undone. They need a reply, or a rule that the user wrote.
//!
//! The table is short on purpose. It contains what a person wants to know before it happens, and nothing that the undo of
//! this program or the reflog of git reverts: edits, commits and `git reset --hard` are not in it. A command that only
//! prints what it would do is not in it, either.

use super::git;
use super::line::Input;
use super::word::Word;
use crate::{Implied, UNKNOWN};

/// A row: programs, the words of an action, and the reason for the user, which is its effect.
struct Row {
    programs: &'static [&'static str],
    /// The first words that are not options. Each place has alternatives.
    words: &'static [&'static [&'static str]],
    /// One of these options is needed; none if the list is empty.
    options: &'static [&'static str],
    reason: &'static str,
}

const OVERWRITES: &str = "it overwrites or deletes commits of the remote repository";
const PUBLISHES: &str = "it publishes to others, and most registries keep what was published";
const DROPS: &str = "it deletes a database or its content";
const REMOTE: &str = "it deletes resources of a remote system";
const DATA: &str = "it deletes the data of containers";
const UNTRACKED: &str = "it deletes files that git does not have";
const DELETES: &str = "it deletes directories that git does not ignore";

const fn row(
    programs: &'static [&'static str],
    words: &'static [&'static [&'static str]],
    options: &'static [&'static str],
    reason: &'static str,
) -> Row {
    Row { programs, words, options, reason }
}

/// The rows. The sources are the manuals of the programs.
const ROWS: &[Row] = &[
    row(
        &["git"],
        &[&["push"]],
        &["-f", "--force", "--force-with-lease", "--mirror", "-d", "--delete", "--prune"],
        OVERWRITES,
    ),
    row(&["git"], &[&["clean"]], &["-f", "--force"], UNTRACKED),
    row(&["npm", "pnpm", "yarn", "bun"], &[&["publish", "unpublish", "deprecate"]], &[], PUBLISHES),
    row(&["yarn"], &[&["npm"], &["publish"]], &[], PUBLISHES),
    row(&["lerna", "changeset", "jsr", "vsce", "ovsx"], &[&["publish", "unpublish"]], &[], PUBLISHES),
    row(&["deno", "dart", "hex", "pub"], &[&["publish"]], &[], PUBLISHES),
    row(&["cargo"], &[&["publish", "yank"]], &[], PUBLISHES),
    row(&["uv", "poetry", "flit", "hatch", "pdm", "maturin"], &[&["publish", "upload"]], &[], PUBLISHES),
    row(&["twine"], &[&["upload"]], &[], PUBLISHES),
    row(&["gem"], &[&["push", "yank"]], &[], PUBLISHES),
    row(&["nuget"], &[&["push", "delete"]], &[], PUBLISHES),
    row(&["dotnet"], &[&["nuget"], &["push", "delete"]], &[], PUBLISHES),
    row(&["mix"], &[&["hex.publish"]], &[], PUBLISHES),
    row(&["mvn", "mvnw"], &[&["deploy"]], &[], PUBLISHES),
    row(&["gradle", "gradlew"], &[&["publish"]], &[], PUBLISHES),
    row(&["docker", "podman", "buildah", "helm", "oras"], &[&["push"]], &[], PUBLISHES),
    row(&["docker", "podman"], &[&["image", "compose", "manifest"], &["push"]], &[], PUBLISHES),
    row(&["docker", "podman"], &[&["build", "buildx"]], &["--push"], PUBLISHES),
    row(&["docker", "podman"], &[&["volume"], &["rm", "remove", "prune"]], &[], DATA),
    row(&["docker", "podman"], &[&["system", "compose"], &["prune", "down"]], &["--volumes", "-v"], DATA),
    row(&["gh", "glab"], &[&["release", "gist"], &["create", "delete", "upload"]], &[], PUBLISHES),
    row(&["gh", "glab"], &[&["repo"], &["create", "delete", "archive", "edit"]], &[], REMOTE),
    row(&["dropdb"], &[], &[], DROPS),
    row(&["mysqladmin"], &[&["drop"]], &[], DROPS),
    row(&["redis-cli", "valkey-cli"], &[&["flushall", "flushdb"]], &[], DROPS),
    row(&["rails", "rake"], &[&["db:drop", "db:reset", "db:purge"]], &[], DROPS),
    row(&["artisan"], &[&["db:wipe", "migrate:fresh", "migrate:reset"]], &[], DROPS),
    row(&["manage.py", "django-admin"], &[&["flush", "reset_db"]], &[], DROPS),
    row(&["mix"], &[&["ecto.drop", "ecto.reset"]], &[], DROPS),
    row(&["sqlx", "diesel"], &[&["database"], &["drop", "reset"]], &[], DROPS),
    row(&["prisma"], &[&["migrate"], &["reset"]], &[], DROPS),
    row(&["prisma"], &[&["db"], &["push"]], &["--force-reset"], DROPS),
    row(&["terraform", "tofu", "pulumi", "cdk", "terragrunt"], &[&["destroy"]], &[], REMOTE),
    row(&["terraform", "tofu", "terragrunt"], &[&["apply"]], &["-destroy", "--destroy"], REMOTE),
    row(&["kubectl", "oc"], &[&["delete"]], &[], REMOTE),
    row(&["helm"], &[&["uninstall", "delete", "del", "un"]], &[], REMOTE),
];

/// Clients of databases, whose statements are arguments or their input.
const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "mongosh",
    "mongo",
    "clickhouse-client",
    "duckdb",
    "sqlcmd",
    "cqlsh",
    "redis-cli",
    "valkey-cli",
];
/// The beginnings of statements that delete.
const STATEMENTS: &[&str] = &[
    "drop database",
    "drop schema",
    "drop table",
    "drop keyspace",
    "truncate ",
    "dropdatabase(",
    ".drop(",
    "flushall",
    "flushdb",
];
/// Clients of remote systems, whose actions are words at any place, and the beginnings of those that delete.
const CLOUDS: &[&str] = &[
    "aws",
    "az",
    "gcloud",
    "gsutil",
    "doctl",
    "heroku",
    "fly",
    "flyctl",
    "vercel",
    "netlify",
    "wrangler",
    "firebase",
    "serverless",
    "sls",
    "supabase",
    "bq",
    "eksctl",
    "oci",
    "hcloud",
    "linode-cli",
];
const CLOUD_WORDS: &[&str] = &["delete", "destroy", "terminate", "remove", "purge"];
/// Short actions of the same clients.
const CLOUD_NAMES: &[&str] = &["rm", "rb"];
/// Programs that run the program in their arguments, and the word before it.
const LAUNCHERS: &[(&[&str], &[&str])] = &[
    (&["npx", "bunx", "uvx", "pnpx"], &[]),
    (&["npm", "pnpm", "yarn"], &["exec", "dlx", "x"]),
    (&["bun"], &["x"]),
    (&["uv", "poetry", "pipx", "pdm", "hatch"], &["run"]),
    (&["bundle"], &["exec"]),
    (&["python", "python3", "php", "ruby"], &[]),
];
/// Methods of requests that delete.
const METHODS: &[&str] = &["-x", "--method", "--request"];

/// Returns the effect of a command that cannot be undone; `None` for ordinary commands.
pub(super) fn found(words: &[Word], input: &Input) -> Option<Implied> {
    // A word has one of several values if the line computes it. Each may be an option.
    let each = words.iter().flat_map(|word| match word.values.as_slice() {
        [] => vec![word.text()],
        values => values.iter().map(String::as_str).collect(),
    });
    let (all, each) = (texts(words), each.collect::<Vec<_>>());
    let found = [&all, &each].into_iter().find_map(|texts| of_command(texts, git_start(words, texts)));
    if let Some(Found { end, reason }) = found {
        return Some(effect(&all, end.filter(|end| *end <= all.len()), reason));
    }
    let is_deleting = CLIENTS.contains(&name_of(all.first()?)) && deletes(&all, input);
    is_deleting.then(|| effect(&all, None, DROPS))
}

/// The directories that `rm` deletes with their content; `None` for other commands.
pub(super) fn removed(words: &[Word]) -> Option<Vec<&Word>> {
    if words.first().map(|word| name_of(word.text())) != Some("rm") {
        return None;
    }
    let (mut operands, mut is_recursive, mut is_end) = (Vec::new(), false, false);
    for word in &words[1..] {
        let is_option = !is_end && word.is_option();
        is_end |= word.text() == "--";
        if is_option {
            let any = |option: &str| word.values.iter().any(|value| abbreviates(value, option));
            let is_short =
                word.values.iter().any(|value| !value.starts_with("--") && value.contains(['r', 'R']));
            is_recursive |= is_short || any("--recursive");
        } else {
            operands.push(word);
        }
    }
    is_recursive.then_some(operands)
}

/// The effect of deleting directories.
pub(super) fn removal(words: &[Word]) -> Implied {
    effect(&texts(words), None, DELETES)
}

fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(Word::text).collect()
}

/// The effect for the permission rules. "Always" covers the words up to `end`, or without it exactly this command.
fn effect(words: &[&str], end: Option<usize>, reason: &'static str) -> Implied {
    let joined = |words: &[&str]| {
        let (first, rest) = words.split_first().unwrap_or((&"", &[]));
        [&[name_of(first)], rest].concat().join(" ")
    };
    let (whole, prefix) = (joined(words), joined(&words[..end.unwrap_or(words.len())]));
    // A pattern with a wildcard of the command would cover more than the command, and so would one whose arguments come from
    // somewhere else: `find … -exec rm -rf {}` and `xargs rm -rf`.
    let is_filled =
        prefix.contains("{}") || (end.is_none() && words.iter().skip(1).all(|word| word.starts_with('-')));
    let is_exact = !prefix.contains(['*', '?', UNKNOWN]) && !is_filled;
    let always = if end.is_some() { format!("{prefix} *") } else { prefix };
    Implied { always: is_exact.then_some(always), irreversible: Some(reason), ..Implied::new("bash", &whole) }
}

struct Found {
    /// The number of words that identify the action. Without it only the whole command does.
    end: Option<usize>,
    reason: &'static str,
}

fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The index of the subcommand of git.
fn git_start(words: &[Word], texts: &[&str]) -> usize {
    let before = words.len() - git::subcommand(words).len();
    before.min(texts.len())
}

fn of_command(words: &[&str], git_start: usize) -> Option<Found> {
    let (first, rest) = words.split_first()?;
    let program = name_of(first);
    let is_git = program == "git";
    let begin = if is_git { git_start } else { 1 };
    let words_of = Split::new(&words[begin.min(words.len())..], begin);
    if words_of.is_harmless(is_git) {
        return None;
    }
    let row = ROWS.iter().filter(|row| row.programs.contains(&program)).find_map(|row| row.find(&words_of));
    row.or_else(|| overwritten(program, &words_of))
        .or_else(|| in_cloud(program, rest))
        .or_else(|| launched(program, words, &words_of))
}

/// The words of a command that are not options, and its options, each with its place.
struct Split<'a> {
    plain: Vec<(usize, &'a str)>,
    options: Vec<(usize, &'a str)>,
}

impl<'a> Split<'a> {
    fn new(words: &[&'a str], begin: usize) -> Self {
        let mut split = Self { plain: Vec::new(), options: Vec::new() };
        let mut is_end = false;
        for (at, word) in words.iter().enumerate() {
            let is_option = !is_end && word.starts_with('-') && word.len() > 1;
            is_end |= *word == "--";
            if is_option {
                split.options.push((at + begin, word));
            } else {
                split.plain.push((at + begin, word));
            }
        }
        split
    }

    /// Whether the command only shows what it would do.
    fn is_harmless(&self, is_git: bool) -> bool {
        self.options.iter().any(|(_, option)| match option.split_once('=') {
            Some(("--dry-run", value)) => !matches!(value, "none" | "false" | "0" | "no"),
            Some(_) => false,
            // The letters after `-o` and `-e` are a value.
            None => {
                let letters = option.split(['o', 'e']).next().unwrap_or_default();
                matches!(*option, "--dry-run" | "--help") || (is_git && is_short(letters, 'n'))
            }
        })
    }
}

impl Row {
    fn find(&self, words: &Split<'_>) -> Option<Found> {
        let begin = (0..=words.plain.len()).find(|begin| self.fits(words, *begin))?;
        let plain = words.plain[begin..].iter().take(self.words.len());
        let option =
            words.options.iter().find(|(_, option)| self.options.iter().any(|name| is(option, name)));
        if !self.options.is_empty() && option.is_none() {
            return None;
        }
        let option = option.filter(|_| !self.options.is_empty());
        let end = plain.chain(option).map(|(at, _)| at + 1).max().unwrap_or(1);
        Some(Found { end: Some(end), reason: self.reason })
    }

    /// Whether the words of the action begin at a place. The words before may be values of options.
    fn fits(&self, words: &Split<'_>, begin: usize) -> bool {
        let follows_option =
            |(at, _): &(usize, &str)| words.options.iter().any(|(option, _)| option + 1 == *at);
        let rest = &words.plain[begin..];
        words.plain[..begin].iter().all(follows_option)
            && rest.len() >= self.words.len()
            && self.words.iter().zip(rest).all(|(names, (_, word))| {
                // Build tools name tasks of projects: `:app:publish`.
                let task = word.rsplit(':').next().filter(|_| word.starts_with(':')).unwrap_or(word);
                names.iter().any(|name| task.eq_ignore_ascii_case(name))
            })
    }
}

/// Whether an option is the one with this name, perhaps with a value, or contains it as a short one.
fn is(option: &str, name: &str) -> bool {
    match name.strip_prefix('-').filter(|letter| letter.len() == 1) {
        Some(letter) => letter.chars().all(|letter| is_short(option, letter)),
        None => option == name || abbreviates(option, name),
    }
}

fn is_short(option: &str, letter: char) -> bool {
    !option.starts_with("--") && option.chars().skip(1).any(|found| found == letter)
}

/// Whether a long option is a name, or an abbreviation of it, as git and the C library accept them.
fn abbreviates(option: &str, name: &str) -> bool {
    let given = option.split('=').next().unwrap_or(option);
    given.len() > 4 && name.starts_with("--") && name.starts_with(given)
}

/// A push of a reference that is overwritten (`+main`) or deleted (`:main`).
fn overwritten(program: &str, words: &Split<'_>) -> Option<Found> {
    let is_push = program == "git" && words.plain.first().is_some_and(|(_, word)| *word == "push");
    let is_over = words
        .plain
        .iter()
        .skip(2)
        .any(|(_, reference)| reference.starts_with(['+', ':']) && *reference != ":");
    (is_push && is_over).then_some(Found { end: None, reason: OVERWRITES })
}

/// An action of a client of a remote system that deletes.
fn in_cloud(program: &str, rest: &[&str]) -> Option<Found> {
    let lower: Vec<String> = rest.iter().map(|word| word.to_ascii_lowercase()).collect();
    if matches!(program, "gh" | "glab") {
        let is_delete = |pair: &[String]| METHODS.contains(&pair[0].as_str()) && pair[1] == "delete";
        let joined = ["-xdelete", "--method=delete", "--request=delete"];
        let is_deleting =
            lower.windows(2).any(is_delete) || lower.iter().any(|word| joined.contains(&word.as_str()));
        return (lower.first().is_some_and(|word| word == "api") && is_deleting)
            .then_some(Found { end: None, reason: REMOTE });
    }
    if !CLOUDS.contains(&program) {
        return None;
    }
    let acts = |word: &str| {
        let mut parts = word.split([':', '-']);
        CLOUD_NAMES.contains(&word) || parts.any(|part| CLOUD_WORDS.contains(&part))
    };
    // Names of resources follow the actions. A word before may be the value of an option.
    let limit = if program == "aws" { 2 } else { 4 };
    let is_option = |word: &String| word.starts_with('-');
    let is_early = |at: usize| {
        let options = lower[..at].iter().filter(|word| is_option(word)).count();
        at - options < limit + options
    };
    let at = (0..lower.len()).find(|at| !is_option(&lower[*at]) && is_early(*at) && acts(&lower[*at]))?;
    Some(Found { end: Some(at + 2), reason: REMOTE })
}

/// The program that another one only starts.
fn launched(program: &str, words: &[&str], split: &Split<'_>) -> Option<Found> {
    let (_, before) = LAUNCHERS.iter().find(|(names, _)| names.contains(&program))?;
    let mut plain = split.plain.iter();
    if !before.is_empty() && !plain.next().is_some_and(|(_, word)| before.contains(word)) {
        return None;
    }
    // `python -m twine` and `php artisan`.
    let (begin, _) = plain.find(|(_, word)| *word != "--")?;
    let found = of_command(&words[*begin..], 1)?;
    Some(Found { end: found.end.map(|end| end + begin), ..found })
}

/// Whether a statement in the arguments or the input of a client deletes.
fn deletes(words: &[&str], input: &Input) -> bool {
    let given = match input {
        Input::Text(text) if text.values.is_empty() => vec![text.raw.clone()],
        Input::Text(text) => text.values.clone(),
        Input::Piped(named) => named.clone(),
        Input::Nothing => Vec::new(),
    };
    let text = [words.join(" "), given.join(" ")].join(" ").to_ascii_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    STATEMENTS.iter().any(|statement| text.contains(statement))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Implied> {
        let words: Vec<_> = line.split(' ').map(Word::fixed).collect();
        found(&words, &Input::Nothing)
    }

    #[test]
    fn what_cannot_be_undone_is_recognised_with_the_narrow_pattern() {
        for (line, reason, always) in [
            ("git push --force", OVERWRITES, "git push --force *"),
            ("git push origin main --force", OVERWRITES, "git push origin main --force *"),
            ("git -C sub push -uf origin main", OVERWRITES, "git -C sub push -uf *"),
            ("git push --force-with-lease=main origin", OVERWRITES, "git push --force-with-lease=main *"),
            ("git push --del origin x", OVERWRITES, "git push --del *"),
            ("git push origin +main", OVERWRITES, "git push origin +main"),
            ("git push origin :old", OVERWRITES, "git push origin :old"),
            ("/usr/bin/git push --delete origin x", OVERWRITES, "git push --delete *"),
            ("git clean -fdx", UNTRACKED, "git clean -fdx *"),
            ("npm --tag next publish", PUBLISHES, "npm --tag next publish *"),
            ("npm publish --access public", PUBLISHES, "npm publish *"),
            ("npx npm publish", PUBLISHES, "npx npm publish *"),
            ("npx prisma migrate reset", DROPS, "npx prisma migrate reset *"),
            ("pnpm dlx vsce publish", PUBLISHES, "pnpm dlx vsce publish *"),
            ("cargo publish --dry", PUBLISHES, "cargo publish *"),
            ("python3 -m twine upload dist/x", PUBLISHES, "python3 -m twine upload *"),
            ("gh release create v1", PUBLISHES, "gh release create *"),
            ("gh repo delete a/b --yes", REMOTE, "gh repo delete *"),
            ("gh api -X DELETE repos/a/b", REMOTE, "gh api -X DELETE repos/a/b"),
            ("docker push image", PUBLISHES, "docker push *"),
            ("docker --context prod image push x", PUBLISHES, "docker --context prod image push *"),
            ("docker volume rm data", DATA, "docker volume rm *"),
            ("./gradlew :app:publish", PUBLISHES, "gradlew :app:publish *"),
            ("dropdb shop", DROPS, "dropdb *"),
            ("psql -c DROP  DATABASE shop", DROPS, "psql -c DROP  DATABASE shop"),
            ("sqlite3 a.db drop table x", DROPS, "sqlite3 a.db drop table x"),
            ("redis-cli -n 2 FLUSHALL", DROPS, "redis-cli -n 2 FLUSHALL *"),
            ("php artisan migrate:fresh", DROPS, "php artisan migrate:fresh *"),
            ("terraform -chdir=infra destroy", REMOTE, "terraform -chdir=infra destroy *"),
            ("kubectl -n prod delete pod x", REMOTE, "kubectl -n prod delete *"),
            ("kubectl delete --dry-run=none pod x", REMOTE, "kubectl delete *"),
            ("aws s3 rb s3://x", REMOTE, "aws s3 rb *"),
            ("aws --profile p s3 rm --recursive s3://x", REMOTE, "aws --profile p s3 rm *"),
            (
                "gcloud compute instances --quiet delete x",
                REMOTE,
                "gcloud compute instances --quiet delete *",
            ),
            ("heroku apps:destroy x", REMOTE, "heroku apps:destroy *"),
        ] {
            let found = of(line).unwrap_or_else(|| panic!("{line} is not recognised"));
            assert_eq!((found.irreversible, found.always.as_deref()), (Some(reason), Some(always)), "{line}");
        }
    }

    #[test]
    fn a_deletion_whose_directories_come_from_somewhere_else_has_no_pattern() {
        let always = |line: &str| removal(&line.split(' ').map(Word::fixed).collect::<Vec<_>>()).always;
        assert_eq!(always("rm -rf dist"), Some("rm -rf dist".to_owned()));
        for line in ["rm -rf {}", "rm -rf x/{}", "rm -rf", "rm -r --"] {
            assert_eq!(always(line), None, "{line}");
        }
    }

    #[test]
    fn a_pattern_never_contains_a_wildcard_of_the_command() {
        assert_eq!(of("git push origin +*:*").map(|found| found.always), Some(None));
    }

    #[test]
    fn ordinary_work_is_not() {
        for line in [
            "git push",
            "git push -u origin main",
            "git push --force --dry-run",
            "git push --follow-tags",
            "git clean -n",
            "git clean -nfd",
            "git reset --hard",
            "git commit -m push --force",
            "npm run build",
            "npm run publish",
            "npm install publish",
            "npm publish --dry-run",
            "npx prettier --write publish",
            "cargo build",
            "cargo publish --help",
            "python3 publish.py",
            "psql -c select",
            "kubectl get pods",
            "kubectl delete --dry-run=client pod x",
            "docker build .",
            "docker compose down",
            "gh pr create",
            "gh api repos/a/b",
            "aws s3 ls delete",
            "echo git push --force",
            "terraform plan -destroy",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn only_recursive_removals_name_directories() {
        for (line, expected) in [
            ("rm -rf src", Some(vec!["src"])),
            ("/bin/rm -fR target src", Some(vec!["target", "src"])),
            ("rm src --recursive --", Some(vec!["src"])),
            ("rm -- -r", None),
            ("rm -f file", None),
            ("rmdir -p r", None),
        ] {
            let words: Vec<_> = line.split(' ').map(Word::fixed).collect();
            let found = removed(&words).map(|words| words.into_iter().map(Word::text).collect::<Vec<_>>());
            assert_eq!(found, expected, "{line}");
        }
    }
}
