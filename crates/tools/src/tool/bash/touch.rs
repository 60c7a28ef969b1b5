//! Which files a command reads and writes, as far as its words show.

use super::options::{has, plain, values_of};
use super::word::Word;
use super::{git, sed};

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
    /// It makes or changes files below a directory.
    Fills,
    /// It may make or change files below a directory.
    MayFill,
}

/// Something that a command does to a file; `path` is `None` if only the run tells which.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Touch {
    pub(super) deed: Deed,
    pub(super) path: Option<String>,
}

/// Commands that show what is in their arguments.
const READERS: &[&str] = &[
    ".", "base32", "base64", "bat", "batcat", "cat", "head", "hexdump", "less", "more", "nl", "od", "rev",
    "source", "strings", "tac", "tail", "view", "xxd", "zcat",
];
/// Commands whose arguments are files that they read, besides others.
const FILTERS: &[&str] = &[
    "awk", "cmp", "column", "comm", "csplit", "cut", "diff", "egrep", "expand", "fgrep", "fmt", "fold",
    "gawk", "grep", "gzip", "join", "jq", "mawk", "paste", "pr", "rg", "sed", "sort", "split", "tar", "uniq",
    "xz", "yq", "zip",
];
/// Commands that show nothing of the files among their arguments.
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
/// Those of them that leave nothing.
const REMOVERS: &[&str] = &["rm", "rmdir", "shred", "unlink"];
/// Commands that replace the files they are given, unless an option sends the result elsewhere.
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
/// Their options that leave the files as they are.
const TO_OUTPUT: &[&str] = &["-c", "-t", "-l", "--stdout", "--to-stdout", "--test", "--list"];
/// Suffixes of what they write.
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
/// Options that name a file to be written, and the commands that have them.
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
/// Commands whose second argument is a file that they write, with their options that take a value.
const SECOND: &[(&str, &[&str])] = &[
    ("uniq", &["-f", "-s", "-w"]),
    ("guniq", &["-f", "-s", "-w"]),
    ("xxd", &["-c", "-g", "-l", "-n", "-o", "-s", "-cols", "-groupsize", "-len", "-name", "-seek"]),
    ("pdftotext", &["-f", "-l", "-r", "-x", "-y", "-W", "-H"]),
];
/// Commands whose first argument is a pattern or a script.
const PATTERNS: &[&str] =
    &["ag", "awk", "egrep", "fgrep", "gawk", "grep", "jq", "perl", "rg", "ripgrep", "sed", "yq"];
/// Commands that copy, move or link their arguments to the last of them.
const PLACERS: &[&str] =
    &["cp", "gcp", "ginstall", "gmv", "install", "link", "ln", "mv", "rsync", "scp", "ditto"];

/// The files a command of these words reads and writes; `name` is its first, without the directory.
pub(super) fn touched(name: &str, words: &[Word]) -> Vec<Touch> {
    let rest = words.get(1..).unwrap_or_default();
    let mut found = Vec::new();
    let is_removal = REMOVERS.contains(&name) || (name == "git" && !git::writes(words).is_empty());
    let deed = if is_removal { Deed::Removes } else { Deed::Writes };
    for word in written(name, words) {
        found.extend(touches(deed, word));
    }
    found.extend(by_option(name, rest));
    found.extend(placed(name, rest));
    found.extend(unpacked(name, rest));
    found.extend(special(name, rest));
    if name == "git" {
        found.extend(by_git(words));
    }
    let is_silent = SILENT.contains(&name) || (name == "git" && !git::shows(words));
    // What `find` hands to a command is read by that, and only `find` knows its name.
    let hands_on = matches!(name, "find" | "fd") && rest.iter().any(|word| word.text().starts_with("-exec"));
    if !is_silent || hands_on {
        found.extend(read(name, rest));
    }
    found
}

fn known(deed: Deed, path: &str) -> Touch {
    Touch { deed, path: Some(path.to_owned()) }
}

fn touches(deed: Deed, word: &Word) -> Vec<Touch> {
    let all = word.values.iter().map(|value| known(deed, value));
    let rest = (!word.is_closed).then_some(Touch { deed, path: None });
    all.chain(rest).collect()
}

/// The words that name files which are written.
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
        found.extend(values_of(rest, options).iter().flat_map(|word| touches(Deed::Writes, word)));
    }
    found
}

fn by_git(words: &[Word]) -> Vec<Touch> {
    let mut found = Vec::new();
    for word in git::outputs(words) {
        found.extend(touches(Deed::Writes, &word));
        found.extend(touches(Deed::MayFill, &word));
    }
    if git::configures(words) {
        let is_elsewhere =
            words.iter().any(|word| matches!(word.text(), "--global" | "--system" | "-f" | "--file"));
        found.extend((!is_elsewhere).then(|| known(Deed::Writes, ".git/config")));
    }
    found.extend(git::may_change_files(words).then(|| known(Deed::MayFill, ".")));
    found
}

/// What commands read and write that put files somewhere: the last word is where.
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
        return sources.into_iter().flat_map(|word| touches(Deed::Writes, word)).collect();
    }
    let targets: Vec<&Word> = if !named.is_empty() {
        named.iter().collect()
    } else if sources.len() == 1 {
        // `ln elsewhere` puts it here.
        vec![&here]
    } else {
        sources.pop().into_iter().collect()
    };
    let mut found: Vec<Touch> = targets.iter().flat_map(|target| touches(Deed::Puts, target)).collect();
    for source in sources {
        found.extend(touches(Deed::Reads, source));
        if name.ends_with("mv") || (name == "rsync" && has(words, &["--remove-source-files"])) {
            found.extend(touches(Deed::Removes, source));
        }
        // Where the target is a directory, the file inside of it is written.
        for target in &targets {
            found.extend(below(target, source));
        }
    }
    if name == "rsync" && words.iter().any(|word| word.text().starts_with("--del")) {
        found.extend(targets.iter().flat_map(|target| touches(Deed::Removes, target)));
    }
    found
}

fn below(target: &Word, source: &Word) -> Vec<Touch> {
    let mut found = Vec::new();
    for to in &target.values {
        for from in &source.values {
            let Some(file) = from.trim_end_matches('/').rsplit('/').next() else { continue };
            found.push(known(Deed::Writes, &format!("{}/{file}", to.trim_end_matches('/'))));
        }
        found.extend((!source.is_closed).then(|| known(Deed::MayFill, to)));
    }
    found
}

/// What archives, downloads and patches write, whose names are not in the line.
fn unpacked(name: &str, rest: &[Word]) -> Vec<Touch> {
    let into = |options: &[&str], deed: Deed| -> Vec<Touch> {
        let directories = values_of(rest, options);
        let here = directories.is_empty().then(|| known(deed, "."));
        directories.iter().flat_map(|word| touches(deed, word)).chain(here).collect()
    };
    match name {
        "tar" | "gtar" | "bsdtar" => tar(rest),
        "unzip" if !has(rest, &["-l", "-p", "-t", "-v", "-z", "-Z"]) => into(&["-d"], Deed::Fills),
        "unrar" | "7z" | "7za" if rest.first().is_some_and(|word| matches!(word.text(), "x" | "e")) => {
            into(&["-o"], Deed::Fills)
        }
        "cpio" | "pax" if has(rest, &["-i", "-p", "-r", "--extract"]) => {
            into(&["-D", "--directory"], Deed::Fills)
        }
        "cpio" | "pax" => values_of(rest, &["-O", "-F", "-f", "--file"])
            .iter()
            .flat_map(|word| touches(Deed::Writes, word))
            .collect(),
        "ar" if rest.first().is_some_and(|word| word.text().contains('x')) => {
            into(&["--output"], Deed::Fills)
        }
        "wget" if !has(rest, &["-O", "--output-document", "--spider"]) => {
            into(&["-P", "--directory-prefix"], Deed::Fills)
        }
        "curl" if rest.iter().any(|word| word.text().contains("%output{")) => {
            into(&["--output-dir"], Deed::Fills)
        }
        "curl" if has(rest, &["-O", "-J", "--remote-name", "--remote-name-all", "--remote-header-name"]) => {
            into(&["--output-dir"], Deed::Fills)
        }
        "aria2c" | "axel" | "sftp" | "ftp" | "lftp" => into(&["-d", "--dir"], Deed::Fills),
        "split" | "gsplit" => {
            let prefix = plain(rest, &["-a", "-b", "-C", "-l", "-n", "-t", "--filter", "--bytes", "--lines"]);
            prefix.get(1).map_or_else(
                || vec![known(Deed::Fills, ".")],
                |word| word.values.iter().map(|value| known(Deed::Writes, &format!("{value}*"))).collect(),
            )
        }
        "csplit" => {
            let prefix = values_of(rest, &["-f", "--prefix"]);
            let here = prefix.is_empty().then(|| known(Deed::Fills, "."));
            let named = prefix.iter().flat_map(|word| &word.values);
            named.map(|value| known(Deed::Writes, &format!("{value}*"))).chain(here).collect()
        }
        // The patch names the files.
        "patch" if !has(rest, &["--dry-run"]) => into(&["-d", "--directory"], Deed::Fills),
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
            found.extend(directories.iter().flat_map(|word| touches(Deed::Fills, word)));
            found.extend(directories.is_empty().then(|| known(Deed::Fills, ".")));
        }
    } else if !has(&words, &["-t", "--list", "-d", "--diff", "--compare"]) {
        found.extend(archives.iter().flat_map(|word| touches(Deed::Writes, word)));
        if has(&words, &["--remove-files"]) {
            found.extend(plain(&words, &["-f", "-C"]).iter().flat_map(|word| touches(Deed::Removes, word)));
        }
    }
    found.extend(
        values_of(&words, &["-g", "--listed-incremental", "--index-file"])
            .iter()
            .flat_map(|word| touches(Deed::Writes, word)),
    );
    found.extend(
        values_of(&words, &["-T", "--files-from"]).iter().flat_map(|word| touches(Deed::Reads, word)),
    );
    found
}

/// What single commands do besides.
fn special(name: &str, rest: &[Word]) -> Vec<Touch> {
    let values = || rest.iter().flat_map(|word| &word.values);
    let mut found = Vec::new();
    match name {
        "dd" | "gdd" => {
            for word in rest {
                for (key, deed) in [("of=", Deed::Writes), ("if=", Deed::Reads)] {
                    let paths = word.values.iter().filter_map(|value| value.strip_prefix(key));
                    found.extend(paths.map(|path| known(deed, path)));
                    let is_open =
                        !word.is_closed && word.raw.trim_start_matches(['"', '\'']).starts_with(key);
                    found.extend(is_open.then_some(Touch { deed, path: None }));
                }
            }
        }
        "find" | "gfind" if values().any(|value| value == "-delete") => {
            let is_root = |word: &&Word| !word.text().starts_with(['-', '(', '!']);
            let roots: Vec<&Word> =
                rest.iter().skip_while(|word| matches!(word.text(), "-L" | "-H" | "-P")).collect();
            let roots: Vec<&Word> = roots.into_iter().take_while(is_root).collect();
            found.extend(roots.is_empty().then(|| known(Deed::Removes, ".")));
            found.extend(roots.into_iter().flat_map(|word| touches(Deed::Removes, word)));
        }
        "find" | "gfind" if values().any(|value| value.starts_with("-exec") || value.starts_with("-ok")) => {
            // What is found by its name is given to the command.
            let named = values_of(rest, &["-name", "-iname", "-path", "-wholename"]);
            let named =
                named.iter().flat_map(|word| &word.values).filter(|name| !name.contains(['*', '?', '[']));
            found.extend(named.map(|name| known(Deed::Reads, name)));
        }
        "sed" | "gsed" => found.extend(sed::touched(rest)),
        name if COMPRESSORS.contains(&name) && !has(rest, TO_OUTPUT) => {
            for word in rest.iter().filter(|word| !word.is_option()) {
                found.extend(touches(Deed::Removes, word));
                for value in &word.values {
                    let stripped = SUFFIXES.iter().find_map(|suffix| value.strip_suffix(suffix));
                    found.extend(stripped.map(|path| known(Deed::Writes, path)));
                    found.extend(
                        SUFFIXES.iter().map(|suffix| known(Deed::Writes, &format!("{value}{suffix}"))),
                    );
                }
            }
            let outputs = values_of(rest, &["-o", "--output"]);
            found.extend(outputs.iter().flat_map(|word| touches(Deed::Writes, word)));
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
    let deed = if READERS.contains(&name) { Deed::Reads } else { Deed::MayRead };
    let mut found = Vec::new();
    for word in words {
        if pattern && !word.text().starts_with('-') {
            pattern = false;
            continue;
        }
        let is_read = READERS.contains(&name) || FILTERS.contains(&name);
        found.extend((is_read && !word.is_closed).then_some(Touch { deed: Deed::MayRead, path: None }));
        for value in &word.values {
            found.extend(candidates(name, value).into_iter().map(|path| {
                let is_plain = path == value.as_str() && !path.starts_with('-');
                known(if is_plain { deed } else { Deed::MayRead }, path)
            }));
        }
    }
    found
}

/// The paths that a word may name: `--file=x`, `if=x`, `@x`, `HEAD:x`, `-fx`, `file:///x`.
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
