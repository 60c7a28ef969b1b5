//! Commands that leave the machine or cannot be undone. They need a reply, or a rule that the user wrote.
//!
//! The table is short on purpose. It contains what a person wants to know before it happens, and nothing that the undo of
//! this program or the reflog of git reverts: edits, commits and `git reset --hard` are not in it. A command that only
//! prints what it would do is not in it, either.

use super::git;
use super::line::Input;
use super::word::Word;
use crate::{Certainty, Implied, UNKNOWN};

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
    let reason = [&all, &each].into_iter().find_map(|texts| of_command(texts, git_start(words, texts)));
    if let Some(reason) = reason {
        return Some(effect(words, reason));
    }
    let is_deleting = CLIENTS.contains(&name_of(all.first()?)) && deletes(&all, input);
    is_deleting.then(|| effect(&with_statement(words, input), DROPS))
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
    effect(words, DELETES)
}

fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(Word::text).collect()
}

/// The words of a client of databases with the statements in its input.
fn with_statement(words: &[Word], input: &Input) -> Vec<Word> {
    let statement = match input {
        Input::Nothing => return words.to_vec(),
        Input::Text(text) if text.is_fixed => Word::fixed(text.text().trim()),
        Input::Text(_) | Input::Piped(_) | Input::Found(..) => Word::unknown(&UNKNOWN.to_string()),
    };
    words.iter().cloned().chain([Word::fixed("<<<"), statement]).collect()
}

/// The effect for the permission rules. "Always" covers exactly this command, because its target is what the user decides
/// about. A word whose values are not all known is shown as it is written, never as a value that it may have.
fn effect(words: &[Word], reason: &'static str) -> Implied {
    let is_known = |word: &Word| word.is_closed && !word.values.is_empty();
    let shown = |word: &Word| if is_known(word) { word.values.join(" ") } else { word.raw.clone() };
    let mut texts: Vec<String> = words.iter().map(shown).collect();
    texts.dedup_by(|word, before| word == before && word.contains(UNKNOWN));
    if let Some(first) = texts.first_mut() {
        *first = name_of(first).to_owned();
    }
    let whole = texts.join(" ");
    // A pattern with a wildcard of the command would cover more than the command, and so would one whose arguments come from
    // somewhere else: `find … -exec rm -rf {}` and `xargs rm -rf`.
    let is_filled =
        whole.contains("{}") || (texts.len() > 1 && texts.iter().skip(1).all(|word| word.starts_with('-')));
    let is_stated = words.iter().all(is_known);
    let is_exact = is_stated && !whole.contains(['*', '?', UNKNOWN]) && !is_filled;
    Implied {
        always: is_exact.then(|| whole.clone()),
        certainty: if is_stated { Certainty::Stated } else { Certainty::Possible },
        irreversible: Some(reason),
        ..Implied::new("bash", &whole)
    }
}

fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The index of the subcommand of git.
fn git_start(words: &[Word], texts: &[&str]) -> usize {
    let before = words.len() - git::subcommand(words).len();
    before.min(texts.len())
}

/// The reason why a command cannot be undone.
fn of_command(words: &[&str], git_start: usize) -> Option<&'static str> {
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
    fn find(&self, words: &Split<'_>) -> Option<&'static str> {
        let is_action = (0..=words.plain.len()).any(|begin| self.fits(words, begin));
        let has_option =
            words.options.iter().any(|(_, option)| self.options.iter().any(|name| is(option, name)));
        (is_action && (self.options.is_empty() || has_option)).then_some(self.reason)
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
fn overwritten(program: &str, words: &Split<'_>) -> Option<&'static str> {
    let is_push = program == "git" && words.plain.first().is_some_and(|(_, word)| *word == "push");
    let is_over = words
        .plain
        .iter()
        .skip(2)
        .any(|(_, reference)| reference.starts_with(['+', ':']) && *reference != ":");
    (is_push && is_over).then_some(OVERWRITES)
}

/// An action of a client of a remote system that deletes.
fn in_cloud(program: &str, rest: &[&str]) -> Option<&'static str> {
    let lower: Vec<String> = rest.iter().map(|word| word.to_ascii_lowercase()).collect();
    if matches!(program, "gh" | "glab") {
        let is_delete = |pair: &[String]| METHODS.contains(&pair[0].as_str()) && pair[1] == "delete";
        let joined = ["-xdelete", "--method=delete", "--request=delete"];
        let is_deleting =
            lower.windows(2).any(is_delete) || lower.iter().any(|word| joined.contains(&word.as_str()));
        return (lower.first().is_some_and(|word| word == "api") && is_deleting).then_some(REMOTE);
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
    let deletes = |at: usize| !is_option(&lower[at]) && is_early(at) && acts(&lower[at]);
    (0..lower.len()).any(deletes).then_some(REMOTE)
}

/// The program that another one only starts.
fn launched(program: &str, words: &[&str], split: &Split<'_>) -> Option<&'static str> {
    let (_, before) = LAUNCHERS.iter().find(|(names, _)| names.contains(&program))?;
    let mut plain = split.plain.iter();
    if !before.is_empty() && !plain.next().is_some_and(|(_, word)| before.contains(word)) {
        return None;
    }
    // `python -m twine` and `php artisan`.
    let (begin, _) = plain.find(|(_, word)| *word != "--")?;
    of_command(&words[*begin..], 1)
}

/// Whether a statement in the arguments or the input of a client deletes.
fn deletes(words: &[&str], input: &Input) -> bool {
    let given = match input {
        Input::Text(text) if text.values.is_empty() => vec![text.raw.clone()],
        Input::Text(text) => text.values.clone(),
        Input::Piped(named) | Input::Found(named, _) => named.clone(),
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
    fn what_cannot_be_undone_is_recognised_and_allowed_only_as_it_is() {
        for (line, reason) in [
            ("git push --force", OVERWRITES),
            ("git push origin main --force", OVERWRITES),
            ("git -C sub push -uf origin main", OVERWRITES),
            ("git push --force-with-lease=main origin", OVERWRITES),
            ("git push --del origin x", OVERWRITES),
            ("git push origin +main", OVERWRITES),
            ("git push origin :old", OVERWRITES),
            ("/usr/bin/git push --delete origin x", OVERWRITES),
            ("git clean -fdx", UNTRACKED),
            ("npm --tag next publish", PUBLISHES),
            ("npm publish --access public", PUBLISHES),
            ("npx npm publish", PUBLISHES),
            ("npx prisma migrate reset", DROPS),
            ("pnpm dlx vsce publish", PUBLISHES),
            ("cargo publish --dry", PUBLISHES),
            ("python3 -m twine upload dist/x", PUBLISHES),
            ("gh release create v1", PUBLISHES),
            ("gh repo delete a/b --yes", REMOTE),
            ("gh api -X DELETE repos/a/b", REMOTE),
            ("docker push image", PUBLISHES),
            ("docker --context prod image push x", PUBLISHES),
            ("docker volume rm data", DATA),
            ("./gradlew :app:publish", PUBLISHES),
            ("dropdb shop", DROPS),
            ("psql -c DROP  DATABASE shop", DROPS),
            ("sqlite3 a.db drop table x", DROPS),
            ("redis-cli -n 2 FLUSHALL", DROPS),
            ("php artisan migrate:fresh", DROPS),
            ("terraform -chdir=infra destroy", REMOTE),
            ("kubectl -n prod delete pod x", REMOTE),
            ("kubectl delete --dry-run=none pod x", REMOTE),
            ("aws s3 rb s3://x", REMOTE),
            ("aws --profile p s3 rm --recursive s3://x", REMOTE),
            ("gcloud compute instances --quiet delete x", REMOTE),
            ("heroku apps:destroy x", REMOTE),
        ] {
            let found = of(line).unwrap_or_else(|| panic!("{line} is not recognised"));
            assert_eq!((found.irreversible, found.certainty), (Some(reason), Certainty::Stated), "{line}");
            let program = name_of(line.split(' ').next().unwrap());
            let exact = format!("{program}{}", line.find(' ').map_or("", |at| &line[at..]));
            assert_eq!((found.always, found.pattern), (Some(exact.clone()), exact), "{line}");
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
    fn an_unknown_target_is_shown_as_it_is_written_and_not_allowed_for_later() {
        let open = Word { values: vec!["list.txt".to_owned()], ..Word::unknown("$(cat list.txt)") };
        let words = ["kubectl", "delete", "pod"].map(Word::fixed);
        let words: Vec<_> = words.into_iter().chain([open]).collect();
        let found = found(&words, &Input::Nothing).unwrap();
        assert_eq!(found.pattern, "kubectl delete pod $(cat list.txt)");
        assert_eq!((found.always, found.certainty), (None, Certainty::Possible));
    }

    #[test]
    fn every_value_of_a_target_is_shown() {
        let each = Word { raw: "$d".to_owned(), is_fixed: false, ..Word::fixed("a") };
        let each = Word { values: vec!["a".to_owned(), "b".to_owned()], ..each };
        let found = removal(&[Word::fixed("/bin/rm"), Word::fixed("-r"), each]);
        assert_eq!((found.pattern.as_str(), found.always.as_deref()), ("rm -r a b", Some("rm -r a b")));
    }

    #[test]
    fn statements_in_the_input_belong_to_the_pattern() {
        let words = ["psql", "shop"].map(Word::fixed);
        for (input, pattern, always) in [
            (Input::Text(Word::fixed("drop table x\n")), "psql shop <<< drop table x", true),
            (Input::Piped(vec!["drop table x".to_owned()]), "psql shop <<< \0", false),
        ] {
            let found = found(&words, &input).unwrap();
            assert_eq!((found.pattern.as_str(), found.always.is_some()), (pattern, always));
        }
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
