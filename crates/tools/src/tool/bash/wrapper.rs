//! Commands that run other commands, and where those stand among their words.

use super::word::Word;

/// What a command runs besides itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Inner {
    /// A command of these words; `more` says that others will follow that only the run tells.
    Words { words: Vec<Word>, more: bool },
    /// A command line of its own, with the arguments that it is given.
    Script { script: Word, arguments: Vec<Word> },
    /// Lines that it reads from its input.
    Input,
}

/// How the words of a wrapper stand before those of its command.
struct Wrapper {
    names: &'static [&'static str],
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Words between the options and the command; none if its words are no command.
    skipped: Option<usize>,
    /// Options whose value is a command line.
    scripts: &'static [&'static str],
}

const fn plain(names: &'static [&'static str], valued: &'static [&'static str]) -> Wrapper {
    Wrapper { names, valued, skipped: Some(0), scripts: &[] }
}

const WRAPPERS: &[Wrapper] = &[
    plain(
        &["nohup", "command", "builtin", "time", "coproc", "busybox", "toybox", "caffeinate", "rlwrap"],
        &[],
    ),
    plain(&["setsid", "dbus-run-session", "faketime", "fakeroot", "catchsegv", "winpty", "!"], &[]),
    plain(&["exec"], &["-a"]),
    plain(&["nice"], &["-n", "--adjustment"]),
    plain(&["ionice"], &["-c", "-n", "-p", "--class", "--classdata"]),
    plain(&["stdbuf"], &["-i", "-o", "-e", "--input", "--output", "--error"]),
    plain(
        &["strace", "ltrace"],
        &["-a", "-b", "-e", "-E", "-I", "-o", "-O", "-p", "-P", "-s", "-S", "-u", "-U", "-X"],
    ),
    plain(&["unshare", "nsenter", "valgrind", "xvfb-run", "pkexec", "eatmydata"], &["-n", "-t", "-u"]),
    plain(&["doas"], &["-C", "-u"]),
    plain(&["systemd-run"], &["-p", "-u", "-E", "-H", "-M", "--unit", "--property", "--setenv"]),
    plain(&["chrt"], &["-T", "-P", "-D"]),
    plain(
        &["sudo"],
        &[
            "-C", "-D", "-R", "-T", "-U", "-a", "-c", "-g", "-h", "-p", "-r", "-t", "-u", "--user",
            "--group", "--chdir",
        ],
    ),
    Wrapper {
        names: &["env"],
        valued: &["-u", "-C", "--unset", "--chdir"],
        skipped: Some(0),
        scripts: &["-S", "--split-string"],
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        valued: &["-k", "-s", "--kill-after", "--signal"],
        skipped: Some(1),
        scripts: &[],
    },
    Wrapper { names: &["chroot", "taskset"], valued: &[], skipped: Some(1), scripts: &[] },
    Wrapper {
        names: &["flock"],
        valued: &["-w", "-E", "--timeout"],
        skipped: Some(1),
        scripts: &["-c", "--command"],
    },
    Wrapper { names: &["su"], valued: &[], skipped: None, scripts: &["-c", "--command"] },
    Wrapper {
        names: &["runuser"],
        valued: &["-g", "-G", "-s", "-u", "-w"],
        skipped: Some(0),
        scripts: &["-c", "--command"],
    },
    Wrapper { names: &["script"], valued: &[], skipped: None, scripts: &["-c", "--command"] },
];

/// Shells, which run what `-c` gives them, or what they read.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash"];
/// Options of shells whose value is the next word.
const SHELL_VALUED: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];
/// Options of `xargs` whose value is the next word.
const XARGS_VALUED: &[&str] = &[
    "-a",
    "-d",
    "-E",
    "-I",
    "-L",
    "-n",
    "-P",
    "-s",
    "--arg-file",
    "--delimiter",
    "--max-args",
    "--max-procs",
    "--replace",
];
/// What `find` follows with a command.
const FIND_ACTIONS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
/// What `fd` follows with one.
const FD_ACTIONS: &[&str] = &["-x", "-X", "--exec", "--exec-batch"];
/// Variables whose value is a command line, for one program or another.
const COMMAND_VARIABLES: &[&str] = &[
    "BROWSER",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_RSH",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "VISUAL",
];
/// Variables that make programs run what no line tells.
const CODE_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "LD_AUDIT",
    "LD_PRELOAD",
];

/// What a command of these words runs; `name` is its first, without the directory.
pub(super) fn inner(name: &str, words: &[Word]) -> Vec<Inner> {
    let rest = words.get(1..).unwrap_or_default();
    if SHELLS.contains(&name) {
        return vec![shell(rest)];
    }
    match name {
        // It tells where they are, and runs none.
        "command" if rest.first().is_some_and(|word| matches!(word.text(), "-v" | "-V")) => Vec::new(),
        "eval" | "parallel" | "watch" => {
            vec![joined(after_options(rest, &["-n", "--interval", "-j", "--jobs"]))]
        }
        "trap" => rest.iter().find(|word| !word.text().starts_with('-')).map(script).into_iter().collect(),
        "alias" => rest.iter().filter_map(alias).collect(),
        "xargs" => vec![xargs(rest)],
        "find" | "gfind" => actions(rest, FIND_ACTIONS),
        "fd" | "fdfind" => actions(rest, FD_ACTIONS),
        "rg" => valued(rest, "--pre").map(|word| words_of(vec![word], true)).into_iter().collect(),
        "tar" => ["--to-command", "--use-compress-program", "-I", "--checkpoint-action"]
            .iter()
            .filter_map(|option| valued(rest, option))
            .map(|word| script(&without("exec=", &word)))
            .collect(),
        "ssh" | "scp" | "rsync" => ["-e", "--rsh"]
            .iter()
            .filter_map(|option| valued(rest, option))
            .map(|word| script(&word))
            .collect(),
        _ => {
            let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name));
            wrapper.map(|wrapper| wrapped(wrapper, rest)).unwrap_or_default()
        }
    }
}

/// What a variable that is set makes a program run.
pub(super) fn variable(name: &str, value: &Word) -> Option<Inner> {
    if COMMAND_VARIABLES.contains(&name) {
        return Some(script(value));
    }
    let is_code = CODE_VARIABLES.contains(&name) || name.starts_with("GIT_CONFIG_");
    is_code.then(|| Inner::Words { words: vec![Word::unknown(name)], more: true })
}

/// The variables that a command sets by its own words: `env A=b`, `export A=b`.
pub(super) fn assignments(name: &str, words: &[Word]) -> Vec<(String, Word)> {
    if !matches!(name, "env" | "export" | "declare" | "typeset" | "readonly" | "local" | "sudo" | "doas") {
        return Vec::new();
    }
    let pair = |word: &Word| {
        let (name, _) = word.text().split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| (name.to_owned(), without(&format!("{name}="), word)))
    };
    words.iter().skip(1).filter_map(pair).collect()
}

/// The word that an option is given, behind it or glued to it.
pub(super) fn valued(words: &[Word], option: &str) -> Option<Word> {
    let at = words.iter().position(|word| word.text() == option);
    if let Some(value) = at.and_then(|at| words.get(at + 1)) {
        return Some(value.clone());
    }
    let glued = format!("{option}=");
    words.iter().find(|word| word.text().starts_with(&glued)).map(|word| without(&glued, word))
}

/// A word that is a command line.
pub(super) fn script(word: &Word) -> Inner {
    Inner::Script { script: word.clone(), arguments: Vec::new() }
}

/// A word without what its values begin with.
pub(super) fn without(prefix: &str, word: &Word) -> Word {
    let values = word.values.iter().map(|value| value.strip_prefix(prefix).unwrap_or(value).to_owned());
    let raw = word.raw.strip_prefix(prefix).unwrap_or(&word.raw).to_owned();
    Word { raw, values: values.collect(), is_fixed: word.is_fixed }
}

/// All words as one command line.
pub(super) fn joined(words: &[Word]) -> Inner {
    let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
    let is_fixed = words.iter().all(|word| word.is_fixed);
    script(&Word { values: vec![text.clone()], raw: text, is_fixed })
}

fn words_of(words: Vec<Word>, more: bool) -> Inner {
    Inner::Words { words, more }
}

/// The words behind a command's options.
pub(super) fn after_options<'a>(words: &'a [Word], valued: &[&str]) -> &'a [Word] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.text();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with(['-', '+']) || text.len() < 2 {
            break;
        }
        at += if valued.contains(&text) { 2 } else { 1 };
    }
    words.get(at..).unwrap_or_default()
}

fn wrapped(wrapper: &Wrapper, words: &[Word]) -> Vec<Inner> {
    let mut found: Vec<Inner> =
        wrapper.scripts.iter().filter_map(|option| valued(words, option)).map(|word| script(&word)).collect();
    if found.is_empty()
        && let Some(glued) =
            words.iter().find(|word| wrapper.scripts.contains(&"-S") && word.text().starts_with("-S"))
    {
        found.push(script(&without("-S", glued)));
    }
    let Some(skipped) = wrapper.skipped else { return found };
    let mut rest = after_options(words, wrapper.valued).get(skipped..).unwrap_or_default();
    while let Some(first) = rest.first() {
        let is_assignment =
            first.text().split_once('=').is_some_and(|(name, _)| !name.contains(['/', ' ', '-']));
        if !is_assignment {
            break;
        }
        rest = &rest[1..];
    }
    if rest.first().is_some_and(|first| !first.text().starts_with('-')) {
        found.push(words_of(rest.to_vec(), false));
    }
    found
}

fn shell(words: &[Word]) -> Inner {
    let mut at = 0;
    let mut takes_script = false;
    while let Some(text) = words.get(at).map(Word::text) {
        if !text.starts_with(['-', '+']) || text.len() < 2 {
            break;
        }
        let is_short = !text.starts_with("--");
        takes_script |= is_short && text.starts_with('-') && text.contains('c');
        if text == "--" {
            at += 1;
            break;
        }
        let takes_value =
            SHELL_VALUED.contains(&text) || (is_short && text.len() > 2 && text.ends_with(['o', 'O']));
        at += if takes_value { 2 } else { 1 };
    }
    let rest = words.get(at..).unwrap_or_default();
    match rest.split_first() {
        Some((script, arguments)) if takes_script => {
            Inner::Script { script: script.clone(), arguments: arguments.to_vec() }
        }
        // A script in a file is a program like any other.
        Some((file, _)) if !matches!(file.text(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => {
            words_of(Vec::new(), false)
        }
        _ => Inner::Input,
    }
}

fn alias(word: &Word) -> Option<Inner> {
    let (name, _) = word.text().split_once('=')?;
    Some(script(&without(&format!("{name}="), word)))
}

fn xargs(words: &[Word]) -> Inner {
    let replaced =
        valued(words, "-I").or_else(|| valued(words, "--replace")).map(|word| word.text().to_owned());
    let glued = words.iter().find_map(|word| word.text().strip_prefix("-I").filter(|rest| !rest.is_empty()));
    let replaced = replaced.or_else(|| glued.map(str::to_owned));
    let rest = after_options(words, XARGS_VALUED);
    let unknown = |word: &Word| match &replaced {
        Some(replaced) if word.text().contains(replaced.as_str()) => Word::unknown(&word.raw),
        _ => word.clone(),
    };
    words_of(rest.iter().map(unknown).collect(), replaced.is_none())
}

fn actions(words: &[Word], names: &[&str]) -> Vec<Inner> {
    let mut found = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| names.contains(&word.text())) {
        let until = |word: &&Word| !matches!(word.text(), ";" | "+");
        let inner: Vec<Word> = words[at + 1..].iter().take_while(until).cloned().collect();
        // What stands for the found file is nothing that the line tells.
        let unknown = |word: Word| if word.text().contains("{}") { Word::unknown(&word.raw) } else { word };
        found.push(words_of(inner.into_iter().map(unknown).collect(), false));
    }
    if words.iter().any(|word| word.text() == "-delete") {
        found.push(words_of(vec![Word::fixed("rm")], true));
    }
    found
}
