//! What git runs and writes besides its own work: aliases, pagers, hooks, drivers.

use super::word::Word;
use super::wrapper::{Inner, joined, script, valued, without};

/// Options before the subcommand whose value is the next word.
const GLOBAL_VALUED: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"];
/// Keys of git's configuration, or their ends, whose value is a command line.
const COMMAND_KEYS: &[&str] = &[
    ".clean",
    ".cmd",
    ".command",
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
    "interactive.difffilter",
    "sequence.editor",
    "web.browser",
];
/// Keys that make git run what lies in a directory or a file.
const CODE_KEYS: &[&str] = &["core.hookspath", "include.path", "init.templatedir", "core.attributesfile"];
/// Subcommands that show nothing of the files they are given.
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

/// The words from the subcommand on.
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

/// What git runs besides.
pub(super) fn inner(words: &[Word]) -> Vec<Inner> {
    let sub = subcommand(words);
    let before = &words[1..words.len() - sub.len()];
    let settings = before.windows(2).filter(|pair| pair[0].text() == "-c").map(|pair| &pair[1]);
    let mut found: Vec<Inner> = settings
        .filter_map(|word| {
            let (key, _) = word.text().split_once('=')?;
            setting(key, &without(&format!("{key}="), word))
        })
        .collect();
    if before
        .iter()
        .any(|word| word.text().starts_with("--config-env") || word.text().starts_with("--exec-path="))
    {
        found.push(unknown());
    }
    let arguments = sub.get(1..).unwrap_or_default();
    match sub.first().map(Word::text) {
        Some("config") => found.extend(configured(arguments)),
        Some("bisect") if arguments.first().is_some_and(|word| word.text() == "run") => {
            found.push(Inner::Words { words: arguments[1..].to_vec(), more: false });
        }
        Some("submodule") if arguments.first().is_some_and(|word| word.text() == "foreach") => {
            let rest: Vec<Word> =
                arguments[1..].iter().filter(|word| word.text() != "--recursive").cloned().collect();
            found.push(joined(&rest));
        }
        Some("rebase") => {
            found.extend(
                ["-x", "--exec"]
                    .iter()
                    .filter_map(|option| valued(arguments, option))
                    .map(|word| script(&word)),
            );
        }
        Some("filter-branch") => {
            let filters = arguments.windows(2).filter(|pair| pair[0].text().ends_with("-filter"));
            found.extend(filters.map(|pair| script(&pair[1])));
        }
        Some("clone" | "fetch" | "pull" | "push" | "ls-remote") => {
            let options = ["-u", "--upload-pack", "--receive-pack", "--exec"];
            found.extend(
                options.iter().filter_map(|option| valued(arguments, option)).map(|word| script(&word)),
            );
            found.extend(
                arguments
                    .iter()
                    .filter(|word| word.text().starts_with("ext::"))
                    .map(|word| script(&without("ext::", word))),
            );
            if arguments.iter().any(|word| word.text().starts_with("--template")) {
                found.push(unknown());
            }
        }
        Some("difftool" | "mergetool") => {
            let options = ["-x", "--extcmd"];
            found.extend(
                options.iter().filter_map(|option| valued(arguments, option)).map(|word| script(&word)),
            );
        }
        Some("grep") => {
            let pager = arguments.iter().find(|word| {
                word.text().starts_with("--open-files-in-pager=") || word.text().starts_with("-O")
            });
            found.extend(pager.map(|word| script(&without("--open-files-in-pager=", &without("-O", word)))));
        }
        Some(_) | None => {}
    }
    found
}

/// Whether a subcommand may show what is in a file that is among its words.
pub(super) fn shows(words: &[Word]) -> bool {
    subcommand(words).first().is_some_and(|word| !SILENT.contains(&word.text()))
}

/// The files that a subcommand is given to write.
pub(super) fn writes(words: &[Word]) -> Vec<&Word> {
    let sub = subcommand(words);
    let Some((name, arguments)) = sub.split_first() else { return Vec::new() };
    let plain = |word: &&Word| !word.text().starts_with('-');
    match name.text() {
        name if WRITING.contains(&name) => arguments.iter().filter(plain).collect(),
        "checkout" => {
            let behind = arguments.iter().skip_while(|word| word.text() != "--").skip(1);
            behind.collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a subcommand writes to the configuration of the repository what git will run later.
pub(super) fn configures(words: &[Word]) -> bool {
    let sub = subcommand(words);
    sub.first().is_some_and(|word| word.text() == "config") && configured(&sub[1..]).is_some()
}

fn configured(arguments: &[Word]) -> Option<Inner> {
    let plain: Vec<&Word> =
        arguments.iter().filter(|word| !word.text().starts_with('-') && word.text() != "set").collect();
    let at = plain.iter().position(|word| is_key(word.text()))?;
    setting(plain[at].text(), plain.get(at + 1)?)
}

fn is_key(text: &str) -> bool {
    let key = text.to_lowercase();
    key.starts_with("alias.")
        || CODE_KEYS.contains(&key.as_str())
        || COMMAND_KEYS.iter().any(|known| key == *known || (known.starts_with('.') && key.ends_with(known)))
}

fn setting(key: &str, value: &Word) -> Option<Inner> {
    let key = key.to_lowercase();
    if !is_key(&key) {
        return None;
    }
    if CODE_KEYS.contains(&key.as_str()) {
        return Some(unknown());
    }
    if key.starts_with("alias.") && !value.text().starts_with('!') {
        // An alias of another subcommand.
        let words = [Word::fixed("git")].into_iter().chain(value.text().split_whitespace().map(Word::fixed));
        return Some(Inner::Words { words: words.collect(), more: true });
    }
    Some(script(&without("!", value)))
}

fn unknown() -> Inner {
    Inner::Words { words: vec![Word::unknown("git")], more: true }
}
