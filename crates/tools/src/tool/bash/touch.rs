//! Which files a command reads and writes, as far as its words tell.

use super::git;
use super::word::Word;

/// What a command does to a file that one of its words names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// It reads it, if it is there.
    MayRead,
    /// It reads it.
    Reads,
    /// It makes or changes it.
    Writes,
    /// The same, unless it is a directory.
    Puts,
    /// It removes it, with all that is in it.
    Removes,
}

/// Commands that show what is in their arguments.
const READERS: &[&str] = &[
    ".", "base32", "base64", "bat", "batcat", "cat", "head", "hexdump", "less", "more", "nl", "od", "rev",
    "source", "strings", "tac", "tail", "view", "xxd", "zcat",
];
/// Commands that show nothing of the files among their arguments.
const SILENT: &[&str] = &[
    "[", "alias", "basename", "cd", "chgrp", "chmod", "chown", "command", "declare", "dirname", "du", "echo",
    "eval", "exec", "exit", "export", "expr", "find", "fd", "fdfind", "kill", "local", "ls", "mkdir",
    "mkfifo", "mknod", "popd", "printf", "pushd", "pwd", "read", "readlink", "realpath", "return", "rm",
    "rmdir", "seq", "set", "shred", "sleep", "stat", "tee", "test", "touch", "trap", "tree", "truncate",
    "type", "typeset", "unlink", "unset", "which",
];
/// Commands that write to all of their arguments.
const WRITERS: &[&str] =
    &["mkdir", "mkfifo", "mknod", "rm", "rmdir", "shred", "sponge", "tee", "touch", "truncate", "unlink"];
/// Those of them that leave nothing.
const REMOVERS: &[&str] = &["rm", "rmdir", "shred", "unlink"];
/// Commands whose first argument is a pattern or a script.
const PATTERNS: &[&str] =
    &["ag", "awk", "egrep", "fgrep", "gawk", "grep", "jq", "perl", "rg", "ripgrep", "sed", "yq"];
/// Options that name a file to be written, and the commands that have them.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("curl", &["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"]),
    ("wget", &["-O", "--output-document", "-o", "--output-file"]),
    ("sort", &["-o", "--output"]),
    ("gcc", &["-o"]),
    ("cc", &["-o"]),
    ("find", &["-fprint", "-fprintf", "-fprint0", "-fls"]),
    ("patch", &["-o", "--output"]),
    ("openssl", &["-out"]),
    ("git", &["--output", "-o"]),
];

/// The files a command of these words reads and writes; `name` is its first, without the directory.
pub(super) fn touched(name: &str, words: &[Word]) -> Vec<(Deed, String)> {
    let rest = words.get(1..).unwrap_or_default();
    let mut found = Vec::new();
    let is_removal = REMOVERS.contains(&name) || (name == "git" && !git::writes(words).is_empty());
    let deed = if is_removal { Deed::Removes } else { Deed::Writes };
    for word in written(name, words) {
        found.extend(word.values.iter().map(|value| (deed, value.clone())));
    }
    found.extend(placed(name, rest));
    if name == "dd" {
        let outputs = rest.iter().flat_map(|word| &word.values).filter_map(|value| value.strip_prefix("of="));
        found.extend(outputs.map(|path| (Deed::Writes, path.to_owned())));
    }
    if name == "git" && git::configures(words) {
        let is_global = rest.iter().any(|word| matches!(word.text(), "--global" | "--system"));
        found.extend((!is_global).then(|| (Deed::Writes, ".git/config".to_owned())));
    }
    let is_silent = SILENT.contains(&name) || (name == "git" && !git::shows(words));
    // What `find` hands to a command is read by that, and only `find` knows its name.
    let hands_on = matches!(name, "find" | "fd") && rest.iter().any(|word| word.text().starts_with("-exec"));
    if !is_silent || hands_on {
        found.extend(read(name, rest));
    }
    found
}

/// The words that name files which are written.
fn written<'a>(name: &str, words: &'a [Word]) -> Vec<&'a Word> {
    let rest = words.get(1..).unwrap_or_default();
    let plain = |word: &&Word| !word.text().starts_with('-');
    if WRITERS.contains(&name) {
        return rest.iter().filter(plain).collect();
    }
    if name == "git" {
        return git::writes(words).into_iter().chain(after_any(name, rest)).collect();
    }
    let in_place = |word: &Word| {
        let text = word.text();
        text.starts_with("--in-place")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains('i'))
    };
    if matches!(name, "sed" | "perl" | "ruby") && rest.iter().any(in_place) {
        let has_script =
            rest.iter().any(|word| matches!(word.text(), "-e" | "-f") || word.text().ends_with('e'));
        return rest.iter().filter(plain).skip(usize::from(!has_script)).collect();
    }
    if name == "patch" {
        return rest.iter().filter(plain).take(1).chain(after_any(name, rest)).collect();
    }
    after_any(name, rest)
}

fn after_any<'a>(name: &str, words: &'a [Word]) -> Vec<&'a Word> {
    let Some((_, options)) = OUTPUTS.iter().find(|(command, _)| *command == name) else { return Vec::new() };
    let pairs = words.windows(2).filter(|pair| options.contains(&pair[0].text()));
    pairs.map(|pair| &pair[1]).collect()
}

/// What commands read and write that put files somewhere: the last word is where.
fn placed(name: &str, words: &[Word]) -> Vec<(Deed, String)> {
    if !matches!(name, "cp" | "mv" | "ln" | "install" | "rsync" | "scp" | "link") {
        return Vec::new();
    }
    let named = words.windows(2).find(|pair| matches!(pair[0].text(), "-t" | "--target-directory"));
    let named = named.map(|pair| pair[1].text().to_owned()).or_else(|| {
        words.iter().find_map(|word| word.text().strip_prefix("--target-directory=").map(str::to_owned))
    });
    let mut plain: Vec<&Word> = words.iter().filter(|word| !word.text().starts_with('-')).collect();
    let targets: Vec<String> = match named {
        Some(target) => {
            plain.retain(|word| word.text() != target);
            vec![target]
        }
        // `ln elsewhere` puts it here.
        None if plain.len() == 1 => vec![".".to_owned()],
        None => plain.pop().map(|word| word.values.clone()).unwrap_or_default(),
    };
    let mut found: Vec<(Deed, String)> = targets.iter().map(|target| (Deed::Puts, target.clone())).collect();
    for source in plain.iter().flat_map(|word| &word.values) {
        found.push((Deed::Reads, source.clone()));
        if name == "mv" {
            found.push((Deed::Removes, source.clone()));
        }
        // Where the target is a directory, the file inside of it is what is written.
        if let Some(file) = source.trim_end_matches('/').rsplit('/').next() {
            found.extend(
                targets.iter().map(|to| (Deed::Writes, format!("{}/{file}", to.trim_end_matches('/')))),
            );
        }
    }
    found
}

fn read(name: &str, words: &[Word]) -> Vec<(Deed, String)> {
    if matches!(name, "cp" | "mv" | "ln" | "install" | "link") {
        return Vec::new();
    }
    let mut pattern = PATTERNS.contains(&name)
        && !words.iter().any(|word| matches!(word.text(), "-e" | "-f" | "--regexp" | "--file"));
    let deed = if READERS.contains(&name) { Deed::Reads } else { Deed::MayRead };
    let mut found = Vec::new();
    for word in words {
        if pattern && !word.text().starts_with('-') {
            pattern = false;
            continue;
        }
        for value in &word.values {
            found.extend(candidates(name, value).into_iter().map(|path| {
                let is_plain = path == value.as_str() && !path.starts_with('-');
                (if is_plain { deed } else { Deed::MayRead }, path.to_owned())
            }));
        }
    }
    found
}

/// The paths that a word may name: `--file=x`, `if=x`, `@x`, `HEAD:x`, `-fx`.
fn candidates<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    let mut found = vec![value];
    let behind = value.split_once('=').map(|(_, behind)| behind);
    found.extend(behind);
    found.extend(value.strip_prefix('@'));
    found.extend(behind.and_then(|behind| behind.strip_prefix('@')));
    if name == "git" {
        found.extend(value.split_once(':').map(|(_, behind)| behind));
    }
    if value.starts_with('-') && !value.starts_with("--") {
        found.extend(value.get(2..).filter(|rest| !rest.is_empty()));
    }
    found
}
