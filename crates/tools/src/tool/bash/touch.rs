//! The files that a command reads and writes, as far as its words name them.

use super::options::{has, plain, values_of};
use super::word::Word;
use super::{git, sed};

/// The effect of a command on a file in its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileUse {
    /// Reads the file if it exists.
    MayRead,
    /// Reads the file.
    Reads,
    /// Creates or changes the file.
    Writes,
    /// Creates or changes the file, unless it is a directory.
    Puts,
    /// Removes the file or directory.
    Removes,
    /// Creates or changes files in a directory.
    Fills,
    /// May create or change files in a directory.
    MayFill,
}

/// The effect of a command on a file. `path` is `None` if it is only known when the command runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Touch {
    pub(super) usage: FileUse,
    pub(super) path: Option<String>,
}

/// Commands that print the content of their arguments.
const READERS: &[&str] = &[
    ".", "base32", "base64", "bat", "batcat", "cat", "head", "hexdump", "less", "more", "nl", "od", "rev",
    "source", "strings", "tac", "tail", "view", "xxd", "zcat",
];
/// Commands whose arguments are files that they read, among others.
const FILTERS: &[&str] = &[
    "awk", "cmp", "column", "comm", "csplit", "cut", "diff", "egrep", "expand", "fgrep", "fmt", "fold",
    "gawk", "grep", "gzip", "join", "jq", "mawk", "paste", "pr", "rg", "sed", "sort", "split", "tar", "uniq",
    "xz", "yq", "zip",
];
/// Commands that do not print the content of files among their arguments.
const SILENT: &[&str] = &[
    ":", "[", "alias", "basename", "cd", "chgrp", "chmod", "chown", "command", "declare", "dirname", "du",
    "echo", "eval", "exec", "exit", "export", "expr", "false", "find", "fd", "fdfind", "kill", "let",
    "local", "ls", "mkdir", "mkfifo", "mknod", "popd", "printf", "pushd", "pwd", "read", "readlink",
    "realpath", "return", "rm", "rmdir", "seq", "shred", "sleep", "stat", "tee", "test", "touch", "trap",
    "tree", "true", "truncate", "type", "typeset", "unlink", "unset", "which",
];
/// Commands that write to all of their arguments.
const WRITERS: &[&str] = &[
    "ctags",
    "dos2unix",
    "ed",
    "ex",
    "fallocate",
    "mac2unix",
    "mkdir",
    "mkfifo",
    "mknod",
    "ranlib",
    "red",
    "rm",
    "rmdir",
    "shred",
    "sponge",
    "strip",
    "tee",
    "touch",
    "truncate",
    "unix2dos",
    "unlink",
];
/// Stands for the configuration of the repository, which may be in a directory above or elsewhere.
pub(super) const REPOSITORY_CONFIG: &str = ".git/config";
/// Those that remove them.
const REMOVERS: &[&str] = &["rm", "rmdir", "shred", "unlink"];
/// Commands that replace their files, unless an option redirects the result.
const COMPRESSORS: &[&str] = &[
    "brotli",
    "bunzip2",
    "bzip2",
    "compress",
    "gunzip",
    "gzip",
    "lz4",
    "lzip",
    "lzma",
    "lzop",
    "pbzip2",
    "pigz",
    "uncompress",
    "unlz4",
    "unlzma",
    "unxz",
    "unzstd",
    "xz",
    "zstd",
];
/// Options with which they keep the files.
const TO_OUTPUT: &[&str] = &["-c", "-t", "-l", "--stdout", "--to-stdout", "--test", "--list"];
/// Suffixes of the files that they write.
const SUFFIXES: &[&str] =
    &[".gz", ".bz2", ".xz", ".lzma", ".zst", ".lz4", ".lz", ".lzo", ".Z", ".br", ".tgz", ".z"];
/// Commands that change their arguments with one of these options.
const IN_PLACE: &[(&[&str], &[&str])] = &[
    (&["perl", "ruby", "sed", "gsed"], &["-i", "--in-place"]),
    (&["clang-format", "yq", "gawk", "awk", "autopep8"], &["-i", "--in-place", "--inplace"]),
    (&["gofmt", "goimports", "shfmt"], &["-w"]),
    (&["prettier", "tidy"], &["--write", "-w", "-m", "-modify"]),
    (&["objcopy", "sd", "rename", "mmv", "rpl"], &[]),
];
/// Options that name an output file, and their commands.
const OUTPUTS: &[(&[&str], &[&str])] = &[
    (
        &["curl"],
        &[
            "-o",
            "--output",
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--libcurl",
            "--etag-save",
            "--hsts",
            "--alt-svc",
        ],
    ),
    (
        &["wget"],
        &["-O", "--output-document", "-o", "--output-file", "-a", "--append-output", "--save-cookies"],
    ),
    (&["sort", "gsort", "shuf", "gshuf"], &["-o", "--output"]),
    (&["gcc", "cc", "clang", "g++", "c++", "clang++", "rustc", "ld", "as", "tsc", "esbuild"], &["-o", "-MF"]),
    (&["find", "gfind"], &["-fprint", "-fprintf", "-fprint0", "-fls"]),
    (&["patch"], &["-o", "--output", "-r", "--reject-file"]),
    (&["openssl"], &["-out", "-keyout", "-writerand"]),
    (&["gpg", "gpg2", "age", "pandoc", "iconv", "xmllint", "dot", "yq", "ffmpeg"], &["-o", "--output"]),
    (&["time", "gtime"], &["-o", "--output"]),
    (&["strace", "ltrace", "perf"], &["-o", "--output"]),
    (&["valgrind"], &["--log-file", "--xml-file"]),
    (&["ssh-keygen"], &["-f"]),
    (&["tcpdump"], &["-w"]),
    (&["less"], &["-o", "-O", "--log-file", "--LOG-FILE"]),
    (&["indent", "bison", "flex"], &["-o", "--output"]),
    (&["rsync"], &["--log-file", "--write-batch", "--only-write-batch"]),
    (&["tree", "column", "xmlstarlet", "jc"], &["-o"]),
    (&["mktemp"], &["-p", "--tmpdir"]),
    (&["ssh", "scp"], &["-E"]),
    (&["script"], &["-I", "-O", "-B", "-T", "--log-in", "--log-out", "--log-io", "--log-timing", "--timing"]),
];
/// Commands that write to their second argument, with their options that have a value.
const SECOND: &[(&str, &[&str])] = &[
    ("uniq", &["-f", "-s", "-w"]),
    ("guniq", &["-f", "-s", "-w"]),
    ("xxd", &["-c", "-g", "-l", "-n", "-o", "-s", "-cols", "-groupsize", "-len", "-name", "-seek"]),
    ("pdftotext", &["-f", "-l", "-r", "-x", "-y", "-W", "-H"]),
];
/// Commands whose first argument is a pattern or a script.
const PATTERNS: &[&str] =
    &["ag", "awk", "egrep", "fgrep", "gawk", "grep", "jq", "perl", "rg", "ripgrep", "sed", "yq"];
/// Commands that copy, move or link their arguments to the last one.
const PLACERS: &[&str] =
    &["cp", "gcp", "ginstall", "gmv", "install", "link", "ln", "mv", "rsync", "scp", "ditto"];

/// The files that a command reads and writes. `name` is its first word, without the directory.
pub(super) fn touched(name: &str, words: &[Word]) -> Vec<Touch> {
    let rest = words.get(1..).unwrap_or_default();
    let mut found = Vec::new();
    let is_removal = REMOVERS.contains(&name) || (name == "git" && !git::writes(words).is_empty());
    let usage = if is_removal { FileUse::Removes } else { FileUse::Writes };
    for word in written(name, words) {
        found.extend(touches(usage, word));
    }
    found.extend(by_option(name, rest));
    found.extend(placed(name, rest));
    found.extend(unpacked(name, rest));
    found.extend(special(name, rest));
    if name == "git" {
        found.extend(by_git(words));
    }
    let is_silent = SILENT.contains(&name) || (name == "git" && !git::prints(words));
    // A file that `find` passes to a command is read by that command, and only `find` knows its name.
    let hands_on = matches!(name, "find" | "fd") && rest.iter().any(|word| word.text().starts_with("-exec"));
    if !is_silent || hands_on {
        found.extend(read(name, rest));
    }
    found
}

fn known(usage: FileUse, path: &str) -> Touch {
    Touch { usage, path: Some(path.to_owned()) }
}

fn touches(usage: FileUse, word: &Word) -> Vec<Touch> {
    let all = word.values.iter().map(|value| known(usage, value));
    let rest = (!word.is_closed).then_some(Touch { usage, path: None });
    all.chain(rest).collect()
}

/// The words that name written files.
fn written<'a>(name: &str, words: &'a [Word]) -> Vec<&'a Word> {
    let rest = words.get(1..).unwrap_or_default();
    let arguments = || rest.iter().filter(|word| !word.is_option());
    if WRITERS.contains(&name) {
        return arguments().collect();
    }
    if name == "git" {
        return git::writes(words);
    }
    if let Some((_, options)) = IN_PLACE.iter().find(|(names, _)| names.contains(&name))
        && (options.is_empty() || has(rest, options))
    {
        let has_script =
            rest.iter().any(|word| matches!(word.text(), "-e" | "-f" | "-E") || word.text().ends_with('e'));
        let skips = matches!(name, "sed" | "gsed" | "perl" | "ruby" | "gawk" | "awk" | "yq") && !has_script;
        return arguments().skip(usize::from(skips)).collect();
    }
    if let Some((_, valued)) = SECOND.iter().find(|(command, _)| *command == name) {
        return plain(rest, valued).into_iter().skip(1).take(1).collect();
    }
    match name {
        "script" => plain(rest, &["-c", "--command", "-o", "-E", "-m"]).into_iter().take(1).collect(),
        "patch" => arguments().take(1).collect(),
        "zip" | "7z" | "7za" | "rar" => arguments().take(if name == "zip" { 1 } else { 2 }).collect(),
        "ar" => arguments().skip(1).take(1).collect(),
        _ => Vec::new(),
    }
}

fn by_option(name: &str, rest: &[Word]) -> Vec<Touch> {
    let mut found = Vec::new();
    for (_, options) in OUTPUTS.iter().filter(|(names, _)| names.contains(&name)) {
        found.extend(values_of(rest, options).iter().flat_map(|word| touches(FileUse::Writes, word)));
    }
    found
}

fn by_git(words: &[Word]) -> Vec<Touch> {
    let mut found = Vec::new();
    for word in git::outputs(words) {
        found.extend(touches(FileUse::Writes, &word));
        found.extend(touches(FileUse::MayFill, &word));
    }
    if git::configures(words) {
        let is_elsewhere =
            words.iter().any(|word| matches!(word.text(), "--global" | "--system" | "-f" | "--file"));
        found.extend((!is_elsewhere).then(|| known(FileUse::Writes, REPOSITORY_CONFIG)));
    }
    found.extend(git::creates(words).map(|directory| known(FileUse::Writes, &format!("{directory}/.git"))));
    found.extend(git::may_change_files(words).then(|| known(FileUse::MayFill, ".")));
    found
}

/// The files of commands that put files somewhere: the last word is the target.
fn placed(name: &str, words: &[Word]) -> Vec<Touch> {
    if !PLACERS.contains(&name) {
        return Vec::new();
    }
    let valued = [
        "-m",
        "-o",
        "-g",
        "-S",
        "-t",
        "-e",
        "--mode",
        "--owner",
        "--group",
        "--suffix",
        "--target-directory",
    ];
    let valued = if matches!(name, "rsync" | "scp") { &valued[4..6] } else { &valued[..] };
    let named = if matches!(name, "rsync" | "scp") {
        Vec::new()
    } else {
        values_of(words, &["-t", "--target-directory"])
    };
    let mut sources: Vec<&Word> = plain(words, valued);
    let here = Word::fixed(".");
    if name == "install" && has(words, &["-d", "--directory"]) {
        return sources.into_iter().flat_map(|word| touches(FileUse::Writes, word)).collect();
    }
    let targets: Vec<&Word> = if !named.is_empty() {
        named.iter().collect()
    } else if sources.len() == 1 {
        // `ln elsewhere` creates the link in this directory.
        vec![&here]
    } else {
        sources.pop().into_iter().collect()
    };
    let mut found: Vec<Touch> = targets.iter().flat_map(|target| touches(FileUse::Puts, target)).collect();
    for source in sources {
        found.extend(touches(FileUse::Reads, source));
        if name.ends_with("mv") || (name == "rsync" && has(words, &["--remove-source-files"])) {
            found.extend(touches(FileUse::Removes, source));
        }
        // If the target is a directory, the file in it is written.
        for target in &targets {
            found.extend(below(target, source));
        }
    }
    if name == "rsync" && words.iter().any(|word| word.text().starts_with("--del")) {
        found.extend(targets.iter().flat_map(|target| touches(FileUse::Removes, target)));
    }
    found
}

fn below(target: &Word, source: &Word) -> Vec<Touch> {
    let mut found = Vec::new();
    for to in &target.values {
        for from in &source.values {
            let Some(file) = from.trim_end_matches('/').rsplit('/').next() else { continue };
            found.push(known(FileUse::Writes, &format!("{}/{file}", to.trim_end_matches('/'))));
        }
        found.extend((!source.is_closed).then(|| known(FileUse::MayFill, to)));
    }
    found
}

/// The effects of archives, downloads and patches on files whose names are not in the line.
fn unpacked(name: &str, rest: &[Word]) -> Vec<Touch> {
    let into = |options: &[&str], usage: FileUse| -> Vec<Touch> {
        let directories = values_of(rest, options);
        let here = directories.is_empty().then(|| known(usage, "."));
        directories.iter().flat_map(|word| touches(usage, word)).chain(here).collect()
    };
    match name {
        "tar" | "gtar" | "bsdtar" => tar(rest),
        "unzip" if !has(rest, &["-l", "-p", "-t", "-v", "-z", "-Z"]) => into(&["-d"], FileUse::Fills),
        "unrar" | "7z" | "7za" if rest.first().is_some_and(|word| matches!(word.text(), "x" | "e")) => {
            into(&["-o"], FileUse::Fills)
        }
        "cpio" | "pax" if has(rest, &["-i", "-p", "-r", "--extract"]) => {
            into(&["-D", "--directory"], FileUse::Fills)
        }
        "cpio" | "pax" => values_of(rest, &["-O", "-F", "-f", "--file"])
            .iter()
            .flat_map(|word| touches(FileUse::Writes, word))
            .collect(),
        "ar" if rest.first().is_some_and(|word| word.text().contains('x')) => {
            into(&["--output"], FileUse::Fills)
        }
        "wget" if !has(rest, &["-O", "--output-document", "--spider"]) => {
            into(&["-P", "--directory-prefix"], FileUse::Fills)
        }
        "curl" if rest.iter().any(|word| word.text().contains("%output{")) => {
            into(&["--output-dir"], FileUse::Fills)
        }
        "curl" if has(rest, &["-O", "-J", "--remote-name", "--remote-name-all", "--remote-header-name"]) => {
            into(&["--output-dir"], FileUse::Fills)
        }
        "aria2c" | "axel" | "sftp" | "ftp" | "lftp" => into(&["-d", "--dir"], FileUse::Fills),
        "split" | "gsplit" => {
            let prefix = plain(rest, &["-a", "-b", "-C", "-l", "-n", "-t", "--filter", "--bytes", "--lines"]);
            prefix.get(1).map_or_else(
                || vec![known(FileUse::Fills, ".")],
                |word| word.values.iter().map(|value| known(FileUse::Writes, &format!("{value}*"))).collect(),
            )
        }
        "csplit" => {
            let prefix = values_of(rest, &["-f", "--prefix"]);
            let here = prefix.is_empty().then(|| known(FileUse::Fills, "."));
            let named = prefix.iter().flat_map(|word| &word.values);
            named.map(|value| known(FileUse::Writes, &format!("{value}*"))).chain(here).collect()
        }
        // The patch names the files.
        "patch" if !has(rest, &["--dry-run"]) => into(&["-d", "--directory"], FileUse::Fills),
        _ => Vec::new(),
    }
}

fn tar(rest: &[Word]) -> Vec<Touch> {
    // The first word may be options without a dash.
    let mut words = rest.to_vec();
    if let Some(first) = words.first_mut()
        && !first.text().starts_with('-')
        && let Some(dashed) = first.map(|value| Some(format!("-{value}")))
    {
        *first = dashed;
    }
    let archives = values_of(&words, &["-f", "--file"]);
    let mut found = Vec::new();
    if has(&words, &["-x", "--extract", "--get"]) {
        let directories = values_of(&words, &["-C", "--directory", "--one-top-level"]);
        let prints = has(&words, &["-O", "--to-stdout"]);
        if !prints {
            found.extend(directories.iter().flat_map(|word| touches(FileUse::Fills, word)));
            found.extend(directories.is_empty().then(|| known(FileUse::Fills, ".")));
        }
    } else if !has(&words, &["-t", "--list", "-d", "--diff", "--compare"]) {
        found.extend(archives.iter().flat_map(|word| touches(FileUse::Writes, word)));
        if has(&words, &["--remove-files"]) {
            found
                .extend(plain(&words, &["-f", "-C"]).iter().flat_map(|word| touches(FileUse::Removes, word)));
        }
    }
    found.extend(
        values_of(&words, &["-g", "--listed-incremental", "--index-file"])
            .iter()
            .flat_map(|word| touches(FileUse::Writes, word)),
    );
    found.extend(
        values_of(&words, &["-T", "--files-from"]).iter().flat_map(|word| touches(FileUse::Reads, word)),
    );
    found
}

/// Further effects of single commands.
fn special(name: &str, rest: &[Word]) -> Vec<Touch> {
    let values = || rest.iter().flat_map(|word| &word.values);
    let mut found = Vec::new();
    match name {
        "dd" | "gdd" => {
            for word in rest {
                for (key, usage) in [("of=", FileUse::Writes), ("if=", FileUse::Reads)] {
                    let paths = word.values.iter().filter_map(|value| value.strip_prefix(key));
                    found.extend(paths.map(|path| known(usage, path)));
                    let is_open =
                        !word.is_closed && word.raw.trim_start_matches(['"', '\'']).starts_with(key);
                    found.extend(is_open.then_some(Touch { usage, path: None }));
                }
            }
        }
        "find" | "gfind" if values().any(|value| value == "-delete") => {
            let is_root = |word: &&Word| !word.text().starts_with(['-', '(', '!']);
            let roots: Vec<&Word> =
                rest.iter().skip_while(|word| matches!(word.text(), "-L" | "-H" | "-P")).collect();
            let roots: Vec<&Word> = roots.into_iter().take_while(is_root).collect();
            found.extend(roots.is_empty().then(|| known(FileUse::Removes, ".")));
            found.extend(roots.into_iter().flat_map(|word| touches(FileUse::Removes, word)));
        }
        "find" | "gfind" if values().any(|value| value.starts_with("-exec") || value.starts_with("-ok")) => {
            // The files that are found by name are passed to the command.
            let named = values_of(rest, &["-name", "-iname", "-path", "-wholename"]);
            let named =
                named.iter().flat_map(|word| &word.values).filter(|name| !name.contains(['*', '?', '[']));
            found.extend(named.map(|name| known(FileUse::Reads, name)));
        }
        "sed" | "gsed" => found.extend(sed::touched(rest)),
        name if COMPRESSORS.contains(&name) && !has(rest, TO_OUTPUT) => {
            for word in rest.iter().filter(|word| !word.is_option()) {
                found.extend(touches(FileUse::Removes, word));
                for value in &word.values {
                    let stripped = SUFFIXES.iter().find_map(|suffix| value.strip_suffix(suffix));
                    found.extend(stripped.map(|path| known(FileUse::Writes, path)));
                    found.extend(
                        SUFFIXES.iter().map(|suffix| known(FileUse::Writes, &format!("{value}{suffix}"))),
                    );
                }
            }
            let outputs = values_of(rest, &["-o", "--output"]);
            found.extend(outputs.iter().flat_map(|word| touches(FileUse::Writes, word)));
        }
        _ => {}
    }
    found
}

fn read(name: &str, words: &[Word]) -> Vec<Touch> {
    if PLACERS.contains(&name) {
        return Vec::new();
    }
    let mut pattern = PATTERNS.contains(&name)
        && !words.iter().any(|word| matches!(word.text(), "-e" | "-f" | "--regexp" | "--file"));
    let usage = if READERS.contains(&name) { FileUse::Reads } else { FileUse::MayRead };
    let mut found = Vec::new();
    for word in words {
        if pattern && !word.text().starts_with('-') {
            pattern = false;
            continue;
        }
        let is_read = READERS.contains(&name) || FILTERS.contains(&name);
        found.extend((is_read && !word.is_closed).then_some(Touch { usage: FileUse::MayRead, path: None }));
        for value in &word.values {
            found.extend(candidates(name, value).into_iter().map(|path| {
                let is_plain = path == value.as_str() && !path.starts_with('-');
                known(if is_plain { usage } else { FileUse::MayRead }, path)
            }));
        }
    }
    found
}

/// The paths that a word may contain: `--file=x`, `if=x`, `@x`, `HEAD:x`, `-fx`, `file:///x`.
fn candidates<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    let mut found = vec![value];
    let behind = value.split_once('=').map(|(_, behind)| behind);
    found.extend(behind);
    found.extend(value.strip_prefix('@'));
    found.extend(behind.and_then(|behind| behind.strip_prefix('@')));
    found.extend(value.split_once("file://").map(|(_, behind)| behind.trim_start_matches("localhost")));
    if name == "git" {
        found.extend(value.split_once(':').map(|(_, behind)| behind));
    }
    if value.starts_with('-') && !value.starts_with("--") {
        let glued = value.get(2..).filter(|rest| !rest.is_empty());
        found.extend(glued);
        found.extend(glued.and_then(|rest| rest.strip_prefix('@')));
    }
    found
}
