//! The programs that git runs and the files that it writes besides its own: aliases, pagers, hooks, drivers.

use super::options::{has, values_of};
use super::word::Word;
use super::wrapper::{Inner, joined, script, without};

/// Options before the subcommand whose value is the next word.
const GLOBAL_VALUED: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source"];
/// Keys of git's configuration, or their ends, whose value is a command line.
const COMMAND_KEYS: &[&str] = &[
    ".clean",
    ".cmd",
    ".command",
    ".defaultkeycommand",
    ".driver",
    ".helper",
    ".process",
    ".program",
    ".receivepack",
    ".smudge",
    ".textconv",
    ".uploadpack",
    ".vcs",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "diff.external",
    "imap.tunnel",
    "interactive.difffilter",
    "sequence.editor",
    "uploadpack.packobjectshook",
    "web.browser",
];
/// Parts of keys that may make git run, read or write something that the line does not show.
const CODE_PARTS: &[&str] = &[
    "allow",
    "attributes",
    "ask",
    "browser",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "exec",
    "external",
    "extension",
    "file",
    "filter",
    "fsmonitor",
    "helper",
    "hook",
    "httpd",
    "include",
    "insteadof",
    "pack",
    "pager",
    "path",
    "process",
    "program",
    "proxy",
    "sendemail",
    "smudge",
    "template",
    "textconv",
    "tool",
    "tunnel",
    "update",
    "url",
    "vcs",
    "worktree",
];
/// Keys with such parts that only affect display or transfer.
const PLAIN_KEYS: &[&str] = &[
    "core.quotepath",
    "diff.tool",
    "merge.tool",
    "pack.threads",
    "pack.window",
    "diff.relative",
    "core.filemode",
    "remote.origin.fetch",
    "status.relativepaths",
    "push.default",
    "pull.rebase",
    "rebase.updaterefs",
];
/// Subcommands of git itself. Any other is an alias or a separate program.
const KNOWN: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bugreport",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "citool",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "credential",
    "credential-cache",
    "credential-store",
    "describe",
    "diagnose",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "fsck",
    "gc",
    "get-tar-commit-id",
    "grep",
    "gui",
    "hash-object",
    "help",
    "hook",
    "http-backend",
    "index-pack",
    "init",
    "instaweb",
    "interpret-trailers",
    "last-modified",
    "lfs",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "prune-packed",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "receive-pack",
    "reflog",
    "refs",
    "remote",
    "repack",
    "replace",
    "replay",
    "repo",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-email",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stage",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "svn",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "upload-archive",
    "upload-pack",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];
/// Subcommands that change files of the worktree without naming them.
const CHANGING: &[&str] = &[
    "am",
    "apply",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "clone",
    "merge",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "stash",
    "submodule",
    "switch",
    "worktree",
];
/// Words after which such a subcommand changes nothing.
const KEEPING: &[&str] = &[
    "--abort",
    "--cached",
    "--check",
    "--continue",
    "--dry-run",
    "--numstat",
    "--quit",
    "--soft",
    "--stat",
    "--staged",
    "--summary",
    "-n",
    "drop",
    "list",
    "show",
    "status",
    "--list",
    "summary",
];
/// Subcommands that do not print the content of the files they are given.
const SILENT: &[&str] = &[
    "add",
    "branch",
    "check-ignore",
    "checkout",
    "clean",
    "clone",
    "commit",
    "config",
    "fetch",
    "init",
    "ls-files",
    "merge",
    "mv",
    "pull",
    "push",
    "rebase",
    "remote",
    "reset",
    "restore",
    "rm",
    "stash",
    "status",
    "switch",
    "tag",
    "update-index",
];
/// Subcommands that write to the files they are given.
const WRITING: &[&str] = &["mv", "restore", "rm"];

/// The words starting with the subcommand.
pub(super) fn subcommand(words: &[Word]) -> &[Word] {
    let mut at = 1;
    while let Some(text) = words.get(at).map(Word::text) {
        if !text.starts_with('-') {
            break;
        }
        at += if GLOBAL_VALUED.contains(&text) { 2 } else { 1 };
    }
    words.get(at..).unwrap_or_default()
}

/// The commands that git runs.
pub(super) fn inner(words: &[Word]) -> Vec<Inner> {
    let sub = subcommand(words);
    let before = &words[1..words.len() - sub.len()];
    let mut found: Vec<Inner> = values_of(before, &["-c"]).iter().flat_map(assigned).collect();
    let is_elsewhere = |word: &Word| {
        ["--config-env", "--exec-path=", "--git-dir"].iter().any(|option| word.text().starts_with(option))
    };
    if before.iter().any(|word| is_elsewhere(word) || !word.is_closed) {
        found.push(Inner::Unknown);
    }
    let Some((name, arguments)) = sub.split_first() else { return found };
    if !name.is_fixed || !KNOWN.contains(&name.text()) {
        found.push(Inner::Unknown);
    }
    found.extend(remote_helpers(arguments));
    found.extend(of_subcommand(name.text(), arguments));
    found
}

/// The programs that the options of a subcommand name.
fn of_subcommand(name: &str, arguments: &[Word]) -> Vec<Inner> {
    let first = arguments.iter().find(|word| !word.is_option()).map(Word::text);
    let scripts = |names: &[&str]| -> Vec<Inner> { values_of(arguments, names).iter().map(script).collect() };
    let mut found = Vec::new();
    match name {
        "config" => found.extend(configured(arguments)),
        "bisect" if first == Some("run") => {
            let at = arguments.iter().position(|word| word.text() == "run").unwrap_or_default();
            found.push(Inner::Words { words: arguments[at + 1..].to_vec(), more: false });
        }
        "submodule" if first == Some("foreach") => {
            let at = arguments.iter().position(|word| word.text() == "foreach").unwrap_or_default();
            let rest: Vec<Word> =
                arguments[at + 1..].iter().filter(|word| !word.is_option()).cloned().collect();
            found.push(joined(&rest));
        }
        "rebase" => found.extend(scripts(&["-x", "--exec"])),
        "filter-branch" => {
            let filters = arguments
                .windows(2)
                .filter(|pair| pair[0].text().ends_with("-filter") || pair[0].text().starts_with("--setup"));
            found.extend(filters.map(|pair| script(&pair[1])));
        }
        "clone" | "fetch" | "pull" | "push" | "ls-remote" | "fetch-pack" | "send-pack" | "archive" => {
            found.extend(scripts(&["--upload-pack", "--receive-pack", "--exec"]));
            if name == "clone" {
                found.extend(scripts(&["-u"]));
                found.extend(values_of(arguments, &["-c", "--config"]).iter().flat_map(assigned));
                found.extend(has(arguments, &["--template"]).then_some(Inner::Unknown));
            }
        }
        "init" => found.extend(has(arguments, &["--template"]).then_some(Inner::Unknown)),
        "difftool" => found.extend(scripts(&["-x", "--extcmd"])),
        "grep" => found.extend(scripts(&["-O", "--open-files-in-pager"])),
        "send-email" => found.extend(scripts(&[
            "--smtp-server",
            "--sendmail-cmd",
            "--to-cmd",
            "--cc-cmd",
            "--header-cmd",
        ])),
        "hook" | "for-each-repo" | "svn" | "instaweb" | "upload-pack" | "upload-archive" | "receive-pack"
        | "http-backend" | "merge-index" | "interpret-trailers" => {
            found.push(Inner::Unknown);
        }
        _ => {}
    }
    found
}

/// Remotes that are commands: `ext::sh -c x`.
fn remote_helpers(arguments: &[Word]) -> Vec<Inner> {
    let commands = arguments.iter().filter_map(|word| {
        word.map(|value| {
            let (_, command) = value.split_once("ext::")?;
            // A percent sign escapes a space.
            Some(command.replace("% ", " "))
        })
    });
    let mut found: Vec<Inner> = commands.map(|word| script(&word)).collect();
    if !found.is_empty() || arguments.iter().any(|word| word.starts_with("fd::")) {
        found.push(Inner::Unknown);
    }
    found
}

/// The commands that git runs because of a setting `key=value`.
fn assigned(word: &Word) -> Vec<Inner> {
    match word.text().split_once('=') {
        Some((key, _)) if !key.contains(['$', '`']) => setting(key, &without(&format!("{key}="), word)),
        Some(_) => vec![Inner::Unknown],
        // A key without a value is true.
        None if word.is_closed => setting(word.text(), &Word::fixed("true")),
        None => vec![Inner::Unknown],
    }
}

/// Whether a subcommand may print the content of a file among its words.
pub(super) fn prints(words: &[Word]) -> bool {
    subcommand(words).first().is_some_and(|word| !SILENT.contains(&word.text()))
}

/// The files that a subcommand writes.
pub(super) fn writes(words: &[Word]) -> Vec<&Word> {
    let sub = subcommand(words);
    let Some((name, arguments)) = sub.split_first() else { return Vec::new() };
    let plain = |word: &&Word| !word.is_option();
    match name.text() {
        name if WRITING.contains(&name) => arguments.iter().filter(plain).collect(),
        "checkout" | "reset" | "clean" => {
            let behind = arguments.iter().skip_while(|word| word.text() != "--").skip(1);
            behind.collect()
        }
        "worktree" if arguments.first().is_some_and(|word| word.text() == "add") => {
            arguments[1..].iter().filter(plain).take(1).collect()
        }
        "clone" => arguments.iter().filter(plain).skip(1).collect(),
        "bundle" if arguments.first().is_some_and(|word| word.text() == "create") => {
            arguments[1..].iter().filter(plain).take(1).collect()
        }
        _ => Vec::new(),
    }
}

/// The files and directories that options name for output.
pub(super) fn outputs(words: &[Word]) -> Vec<Word> {
    let sub = subcommand(words);
    let Some((name, arguments)) = sub.split_first() else { return Vec::new() };
    let mut names = vec!["--output"];
    match name.text() {
        "archive" | "bugreport" | "diagnose" => names.push("-o"),
        "format-patch" => names.extend(["-o", "--output-directory"]),
        "fast-export" | "fast-import" => names.push("--export-marks"),
        "checkout-index" => names.push("--prefix"),
        "config" => names.extend(["-f", "--file"]),
        "credential-store" => names.push("--file"),
        "clone" | "init" => names.push("--separate-git-dir"),
        "commit" | "log" | "push" | "fetch" | "pull" | "ls-files" => names.clear(),
        _ => {}
    }
    if name.text() == "log" {
        names.push("--output");
    }
    values_of(arguments, &names)
}

/// Whether a subcommand may change files of the worktree that it does not name.
pub(super) fn may_change_files(words: &[Word]) -> bool {
    let sub = subcommand(words);
    let Some((name, arguments)) = sub.split_first() else { return false };
    let keeps = |word: &Word| KEEPING.contains(&word.text());
    let makes_branch = |word: &Word| matches!(word.text(), "-b" | "-B" | "-c" | "-C" | "--create");
    match name.text() {
        // Without other words it changes the branch only.
        "checkout" | "switch" if arguments.iter().any(makes_branch) && arguments.len() == 2 => false,
        "reset" if !has(arguments, &["--hard", "--merge", "--keep"]) => false,
        "worktree" | "submodule" => {
            arguments.first().is_some_and(|word| matches!(word.text(), "add" | "update" | "move" | "remove"))
        }
        name => CHANGING.contains(&name) && !arguments.iter().any(keeps),
    }
}

/// Whether a subcommand writes to the configuration of the repository.
pub(super) fn configures(words: &[Word]) -> bool {
    let sub = subcommand(words);
    let Some((name, arguments)) = sub.split_first() else { return false };
    let first = |names: &[&str]| arguments.first().is_some_and(|word| names.contains(&word.text()));
    match name.text() {
        "config" => {
            let reads =
                ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get", "list"];
            let edits =
                ["--edit", "-e", "edit", "--unset", "--unset-all", "unset", "--add", "--remove-section"];
            let is_read = arguments.iter().any(|word| reads.contains(&word.text()));
            let plain = arguments.iter().filter(|word| !word.is_option()).count();
            !is_read && (plain > 1 || arguments.iter().any(|word| edits.contains(&word.text())))
        }
        "remote" => first(&["add", "remove", "rm", "rename", "set-url", "set-head", "set-branches"]),
        "branch" => has(arguments, &["-u", "--set-upstream-to", "--unset-upstream", "-t", "--track"]),
        "checkout" | "switch" => has(arguments, &["-t", "--track"]),
        "push" => has(arguments, &["-u", "--set-upstream"]),
        "fetch" | "pull" => has(arguments, &["--set-upstream"]),
        "submodule" => first(&["add", "init", "sync", "deinit", "set-url", "set-branch", "absorbgitdirs"]),
        "sparse-checkout" => first(&["set", "add", "init", "disable"]),
        _ => false,
    }
}

/// The directory in which a subcommand creates a repository.
pub(super) fn creates(words: &[Word]) -> Option<&str> {
    let (name, arguments) = subcommand(words).split_first()?;
    if name.text() != "init" {
        return None;
    }
    let valued =
        ["-b", "--initial-branch", "--template", "--separate-git-dir", "--object-format", "--ref-format"];
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if valued.contains(&word.text()) {
            rest.next();
        } else if !word.is_option() {
            return Some(word.text());
        }
    }
    Some(".")
}

/// Whether a command creates a repository without a template or settings that the line names.
pub(super) fn creates_plainly(words: &[Word]) -> bool {
    let [git, init, rest @ ..] = words else { return false };
    let is_usual = |word: &Word| {
        let text = word.text();
        word.is_closed
            && (!word.is_option()
                || ["-q", "--quiet", "-b"].contains(&text)
                || text.starts_with("--initial-branch"))
    };
    git.text() == "git" && init.text() == "init" && rest.iter().all(is_usual)
}

fn configured(arguments: &[Word]) -> Vec<Inner> {
    let plain: Vec<&Word> =
        arguments.iter().filter(|word| !word.is_option() && word.text() != "set").collect();
    let at = plain.iter().position(|word| is_key(&word.text().to_lowercase()));
    let Some(at) = at else { return Vec::new() };
    plain.get(at + 1).map(|value| setting(plain[at].text(), value)).unwrap_or_default()
}

/// Whether a key may make git run a command.
fn is_key(key: &str) -> bool {
    key.starts_with("alias.")
        || is_command(key)
        || (!PLAIN_KEYS.contains(&key)
            && key.contains('.')
            && CODE_PARTS.iter().any(|part| key.contains(part)))
}

fn is_command(key: &str) -> bool {
    key.starts_with("pager.")
        || COMMAND_KEYS.iter().any(|known| key == *known || (known.starts_with('.') && key.ends_with(known)))
}

fn setting(key: &str, value: &Word) -> Vec<Inner> {
    let key = key.to_lowercase();
    if !is_key(&key) {
        return Vec::new();
    }
    let is_switch =
        value.is_fixed && matches!(value.text(), "true" | "false" | "0" | "1" | "" | "never" | "always");
    if is_switch && !key.ends_with(".allow") {
        return Vec::new();
    }
    if key.starts_with("alias.") && !value.starts_with("!") {
        // An alias of another subcommand.
        let words = [Word::fixed("git")].into_iter().chain(value.text().split_whitespace().map(Word::fixed));
        let rest = (!value.is_closed).then_some(Inner::Unknown);
        return [Inner::Words { words: words.collect(), more: true }].into_iter().chain(rest).collect();
    }
    if !key.starts_with("alias.") && !is_command(&key) {
        // The location of a repository is not a command.
        let is_plain_url = key.ends_with("url") && value.is_fixed && !value.text().contains("::");
        return if is_plain_url { Vec::new() } else { vec![Inner::Unknown] };
    }
    vec![script(&without("!", value))]
}
