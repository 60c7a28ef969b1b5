//! Commands that run other commands, and the position of those among their words.

use std::rc::Rc;

use super::options::{has, values_of};
use super::word::{Origin, Word};

/// A command that another command runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Inner {
    /// A command of these words. `more` says that unknown words follow.
    Words { words: Vec<Word>, more: bool },
    /// A command line with its arguments.
    Script { script: Word, arguments: Vec<Word> },
    /// The input lines.
    Input,
    /// An unknown command.
    Unknown,
}

/// The words of a wrapper before those of its command.
///
/// An option in neither list may have a value or not, so the command is unknown.
struct Wrapper {
    names: &'static [&'static str],
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// Options without a value. One with `-` and letters is a list of short ones.
    flags: &'static [&'static str],
    /// The number of words between the options and the command, or `None` if its words are not a command.
    skipped: Option<usize>,
    /// Options whose value is a command line.
    scripts: &'static [&'static str],
}

const fn plain(
    names: &'static [&'static str],
    valued: &'static [&'static str],
    flags: &'static [&'static str],
) -> Wrapper {
    Wrapper { names, valued, flags, skipped: Some(0), scripts: &[] }
}

const WRAPPERS: &[Wrapper] = &[
    plain(
        &[
            "nohup",
            "builtin",
            "busybox",
            "toybox",
            "caffeinate",
            "setarch",
            "!",
            "noglob",
            "nocorrect",
            "-",
            "and",
            "or",
            "not",
            "{",
            "if",
            "then",
            "elif",
            "else",
            "do",
            "while",
            "until",
        ],
        &[],
        &[],
    ),
    plain(&["command"], &[], &["-p"]),
    plain(
        &["time", "gtime"],
        &["-f", "-o", "--format", "--output"],
        &["-pvaqV", "--portability", "--verbose", "--append"],
    ),
    plain(&["coproc"], &[], &[]),
    plain(&["setsid"], &[], &["-cfw", "--ctty", "--fork", "--wait"]),
    plain(&["exec"], &["-a"], &["-cl"]),
    plain(&["nice"], &["-n", "--adjustment"], &["-0123456789"]),
    plain(&["ionice"], &["-c", "-n", "-p", "--class", "--classdata"], &["-t", "--ignore"]),
    plain(&["stdbuf"], &["-i", "-o", "-e", "--input", "--output", "--error"], &[]),
    plain(
        &["strace", "ltrace"],
        &["-a", "-b", "-e", "-E", "-I", "-o", "-O", "-P", "-s", "-S", "-u", "-U", "-X"],
        &["-cCdDfFhikqrtTvVwxyYzZ"],
    ),
    plain(
        &[
            "bwrap",
            "catchsegv",
            "cgexec",
            "chpst",
            "choom",
            "daemonize",
            "dbus-run-session",
            "dbus-launch",
            "eatmydata",
            "faketime",
            "fakeroot",
            "firejail",
            "heaptrack",
            "mpirun",
            "nsenter",
            "perf",
            "pkexec",
            "prlimit",
            "proot",
            "rlwrap",
            "rr",
            "schroot",
            "setpriv",
            "setuidgid",
            "softlimit",
            "start-stop-daemon",
            "systemd-inhibit",
            "systemd-run",
            "torsocks",
            "proxychains",
            "unbuffer",
            "unshare",
            "valgrind",
            "winpty",
            "wine",
            "xvfb-run",
            "chronic",
            "ifne",
            "sg",
            "numactl",
            "entr",
            "reptyr",
            "dtach",
            "abduco",
            "trickle",
            "cpulimit",
            "linux32",
            "linux64",
            "dtruss",
            "run-parts",
        ],
        &[],
        &[],
    ),
    plain(&["doas"], &["-C", "-u"], &["-Lns"]),
    plain(&["ssh-agent"], &["-a", "-t", "-O", "-P", "-E"], &["-cskdD"]),
    plain(&["chrt"], &["-T", "-P", "-D"], &["-abdfimoprRv"]),
    plain(
        &["sudo"],
        &[
            "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", "-u", "--user", "--group", "--chdir",
            "--host", "--prompt", "--role", "--type",
        ],
        &["-ABbEHiKknPSsvVl", "--non-interactive", "--preserve-env", "--login", "--stdin", "--set-home"],
    ),
    Wrapper {
        names: &["env"],
        valued: &["-u", "-C", "--unset", "--chdir"],
        flags: &["-i0v", "-", "--ignore-environment", "--null", "--debug"],
        skipped: Some(0),
        scripts: &["-S", "--split-string"],
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        valued: &["-k", "-s", "--kill-after", "--signal"],
        flags: &["-vfp", "--foreground", "--preserve-status", "--verbose"],
        skipped: Some(1),
        scripts: &[],
    },
    Wrapper { names: &["repeat"], valued: &[], flags: &[], skipped: Some(1), scripts: &[] },
    Wrapper { names: &["chroot"], valued: &[], flags: &[], skipped: Some(1), scripts: &[] },
    Wrapper { names: &["taskset"], valued: &[], flags: &["-ac"], skipped: Some(1), scripts: &[] },
    Wrapper {
        names: &["flock"],
        valued: &["-w", "-E", "--timeout", "--wait", "--conflict-exit-code"],
        flags: &[
            "-xesnoFuv",
            "--exclusive",
            "--shared",
            "--nonblock",
            "--nb",
            "--close",
            "--no-fork",
            "--verbose",
        ],
        skipped: Some(1),
        scripts: &["-c", "--command"],
    },
    Wrapper {
        names: &["su"],
        valued: &[],
        flags: &[],
        skipped: None,
        scripts: &["-c", "--command", "--session-command"],
    },
    Wrapper {
        names: &["runuser"],
        valued: &["-g", "-G", "-s", "-u", "-w"],
        flags: &["-", "-lmpf"],
        skipped: Some(0),
        scripts: &["-c", "--command", "--session-command"],
    },
    Wrapper { names: &["script"], valued: &[], flags: &[], skipped: None, scripts: &["-c", "--command"] },
];

/// Shells, which run the value of `-c` or their input.
const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "oksh", "yash", "ash", "fish", "rbash", "posh",
    "csh", "tcsh",
];
/// Options of shells whose value is the next word.
const SHELL_VALUED: &[&str] = &["-o", "+o", "-O", "+O"];
/// Options of `xargs` whose value is the next word.
const XARGS_VALUED: &[&str] = &[
    "-a",
    "-d",
    "-E",
    "-I",
    "-J",
    "-L",
    "-n",
    "-P",
    "-R",
    "-s",
    "--arg-file",
    "--delimiter",
    "--max-args",
    "--max-chars",
    "--max-lines",
    "--max-procs",
    "--process-slot-var",
];
/// Options of `xargs` without a value.
const XARGS_FLAGS: &[&str] = &[
    "-0rtxpoeil",
    "--null",
    "--no-run-if-empty",
    "--verbose",
    "--exit",
    "--interactive",
    "--open-tty",
    "--replace",
    "--eof",
    "--show-limits",
];
/// Options of `find` that are followed by a command.
const FIND_ACTIONS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
/// Options of `fd` that are followed by a command.
const FD_ACTIONS: &[&str] = &["-x", "-X", "--exec", "--exec-batch"];

/// The commands that a command runs. `name` is its first word, without the directory.
pub(super) fn inner(name: &str, words: &[Word]) -> Vec<Inner> {
    let rest = words.get(1..).unwrap_or_default();
    if SHELLS.contains(&name) {
        return shell(rest);
    }
    match name {
        // It prints their paths and runs nothing.
        "command" if rest.first().is_some_and(|word| matches!(word.text(), "-v" | "-V" | "-pv")) => {
            Vec::new()
        }
        "eval" => vec![joined(after(rest, &[], &[]).0)],
        "watch" => searched(rest, &["-n", "--interval"], &["-bcdegtpx", "--color", "--differences"]),
        "parallel" => vec![joined(after(rest, &["-j", "--jobs", "-n", "-I"], &[]).0), Inner::Unknown],
        "trap" => rest.iter().filter(|word| !word.is_option()).map(script).collect(),
        "alias" => rest.iter().filter_map(alias).collect(),
        "hash" => values_of(rest, &["-p"]).into_iter().map(|word| words_of(vec![word], true)).collect(),
        "compgen" | "complete" => {
            let scripts = values_of(rest, &["-C", "-F"]);
            scripts.iter().map(|word| words_of(word.split().into_iter().flatten().collect(), true)).collect()
        }
        "mapfile" | "readarray" => values_of(rest, &["-C"]).iter().map(script).collect(),
        "fc" if !rest.is_empty() && !has(rest, &["-l"]) => vec![Inner::Unknown],
        "source" | "." => sourced(rest),
        "xargs" | "gxargs" => xargs(rest),
        "find" | "gfind" => actions(rest, FIND_ACTIONS),
        "fd" | "fdfind" => fd(rest),
        _ => programs(name, rest),
    }
}

/// The commands that options of some programs name.
fn programs(name: &str, rest: &[Word]) -> Vec<Inner> {
    let scripts = |names: &[&str]| -> Vec<Inner> { values_of(rest, names).iter().map(script).collect() };
    match name {
        "rg" => {
            let programs = values_of(rest, &["--pre", "--hostname-bin"]);
            programs.into_iter().map(|word| words_of(vec![word], true)).collect()
        }
        "tar" | "gtar" | "bsdtar" => tar(rest),
        "ssh" | "scp" | "sftp" | "rsync" | "autossh" | "mosh" => {
            let mut found = match name {
                "rsync" => scripts(&["-e", "--rsh", "--rsync-path"]),
                "mosh" => scripts(&["--ssh", "--server", "--client"]),
                "ssh" => Vec::new(),
                _ => scripts(&["-S"]),
            };
            for option in values_of(rest, &["-o"]) {
                let is_command = option.text().to_lowercase().contains("command");
                let command = option.map(|value| {
                    let at = value.find(['=', ' '])?;
                    Some(value[at + 1..].to_owned())
                });
                found.extend(command.filter(|_| is_command && name != "rsync").map(|word| script(&word)));
            }
            // Its configuration may name programs.
            let has_file = name != "rsync" && !values_of(rest, &["-F"]).is_empty();
            found.extend(has_file.then_some(Inner::Unknown));
            found
        }
        "sed" | "gsed" => {
            let commands = super::sed::commands(rest);
            let script =
                |text: &String| if text.is_empty() { Inner::Unknown } else { script(&Word::fixed(text)) };
            commands.iter().map(script).collect()
        }
        "man" => scripts(&["-P", "--pager", "-H"]),
        "sort" | "gsort" => scripts(&["--compress-program"]),
        "split" | "gsplit" => scripts(&["--filter"]),
        "hyperfine" => rest.iter().filter(|word| !word.is_option()).map(script).collect(),
        "ip" => {
            let at = rest.iter().position(|word| word.text() == "exec");
            at.map(|at| words_of(rest.get(at + 2..).unwrap_or_default().to_vec(), false))
                .into_iter()
                .collect()
        }
        "vi" | "vim" | "nvim" | "emacs" if rest.iter().any(|word| word.text().starts_with(['-', '+'])) => {
            vec![Inner::Unknown]
        }
        "ed" | "red" | "ex" => vec![Inner::Unknown],
        "less" | "more" if rest.iter().any(|word| word.starts_with("+")) => vec![Inner::Unknown],
        "zip" => scripts(&["-TT", "--unzip-command"]),
        "wget" => scripts(&["--use-askpass"]),
        "sqlite3" | "psql" | "mysql" | "gnuplot" if rest.iter().any(|word| shell_escape(word.text())) => {
            vec![Inner::Unknown]
        }
        "cargo" if has(rest, &["--config"]) => vec![Inner::Unknown],
        "make" | "gmake" if rest.iter().any(|word| word.starts_with("--eval")) => vec![Inner::Unknown],
        "curl" if has(rest, &["-K", "--config"]) => vec![Inner::Unknown],
        "busybox" | "toybox" if rest.is_empty() => Vec::new(),
        "script" if rest.iter().any(|word| word.text() == "--") => {
            let at = rest.iter().position(|word| word.text() == "--").unwrap_or_default();
            vec![words_of(rest[at + 1..].to_vec(), false)]
        }
        "script" if rest.iter().filter(|word| !word.is_option()).count() > 2 => {
            let mut found = scripts(&["-c", "--command"]);
            found.push(Inner::Unknown);
            found
        }
        _ => {
            let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name));
            wrapper.map(|wrapper| wrapped(wrapper, rest)).unwrap_or_default()
        }
    }
}

/// Whether a command for a database shell may start a program.
fn shell_escape(text: &str) -> bool {
    [".shell", ".system", "\\!", ".output |", ".once |", "\\o |", "system "]
        .iter()
        .any(|escape| text.contains(escape))
}

fn tar(rest: &[Word]) -> Vec<Inner> {
    let options = [
        "--to-command",
        "--use-compress-program",
        "-I",
        "--checkpoint-action",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "--rmt-command",
    ];
    let values = values_of(rest, &options);
    values.iter().map(|word| script(&without("exec=", word))).collect()
}

/// A word as a command line.
pub(super) fn script(word: &Word) -> Inner {
    Inner::Script { script: word.clone(), arguments: Vec::new() }
}

/// A word without a prefix of its values.
pub(super) fn without(prefix: &str, word: &Word) -> Word {
    let values = word.values.iter().map(|value| value.strip_prefix(prefix).unwrap_or(value).to_owned());
    let raw = word.raw.strip_prefix(prefix).unwrap_or(&word.raw).to_owned();
    Word { raw, values: values.collect(), ..word.clone() }
}

/// All words as one command line.
pub(super) fn joined(words: &[Word]) -> Inner {
    let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
    let is_fixed = words.iter().all(|word| word.is_fixed && word.values.len() == 1);
    script(&Word { values: vec![text.clone()], raw: text, is_fixed, is_closed: is_fixed, origin: None })
}

fn words_of(words: Vec<Word>, more: bool) -> Inner {
    Inner::Words { words, more }
}

/// The words after a command's options, and whether every option is known.
fn after<'a>(words: &'a [Word], valued: &[&str], flags: &[&str]) -> (&'a [Word], bool) {
    let (mut at, mut is_sure) = (0, true);
    while let Some(word) = words.get(at) {
        let text = word.text();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with(['-', '+']) || (text.len() < 2 && !flags.contains(&text)) {
            break;
        }
        at += 1;
        if valued.contains(&text) {
            at += 1;
        } else {
            is_sure &= is_known(text, valued, flags);
        }
        is_sure &= word.is_fixed;
    }
    (words.get(at..).unwrap_or_default(), is_sure)
}

/// Whether an option has no separate value: a flag, several flags, or one with its value attached.
fn is_known(text: &str, valued: &[&str], flags: &[&str]) -> bool {
    if flags.contains(&text) {
        return true;
    }
    if text.starts_with("--") {
        return text.contains('=');
    }
    let letters: String = flags.iter().filter(|flag| !flag.starts_with("--")).copied().collect();
    let mut rest = text[1..].chars();
    while let Some(letter) = rest.next() {
        if valued.contains(&format!("-{letter}").as_str()) {
            return !rest.as_str().is_empty();
        }
        if !letters.contains(letter) {
            return false;
        }
    }
    true
}

/// A command whose words after the options are joined to a line.
fn searched(words: &[Word], valued: &[&str], flags: &[&str]) -> Vec<Inner> {
    let (rest, is_sure) = after(words, valued, flags);
    [joined(rest)].into_iter().chain((!is_sure).then_some(Inner::Unknown)).collect()
}

fn wrapped(wrapper: &Wrapper, words: &[Word]) -> Vec<Inner> {
    let mut found: Vec<Inner> = values_of(words, wrapper.scripts).iter().map(script).collect();
    let Some(skipped) = wrapper.skipped else { return found };
    if !found.is_empty() && wrapper.names.contains(&"env") {
        found.push(Inner::Unknown);
    }
    let (rest, is_sure) = after(words, wrapper.valued, wrapper.flags);
    let mut rest = rest.get(skipped..).unwrap_or_default();
    if !is_sure && found.is_empty() {
        found.push(Inner::Unknown);
    }
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
    } else if !rest.is_empty() && found.is_empty() {
        found.push(Inner::Unknown);
    }
    found
}

fn shell(words: &[Word]) -> Vec<Inner> {
    if words.first().is_some_and(|word| matches!(word.text(), "--version" | "--help")) {
        return Vec::new();
    }
    let mut at = 0;
    let (mut takes_script, mut reads_input) = (false, false);
    let mut found = Vec::new();
    for file in values_of(words, &["--rcfile", "--init-file"]) {
        found.push(file_of(&file));
    }
    found.extend(values_of(words, &["--command", "--init-command"]).iter().map(script));
    if words.iter().any(|word| word.text() == "-O") {
        // Wildcards may then have another meaning.
        found.push(Inner::Unknown);
    }
    while let Some(text) = words.get(at).map(Word::text) {
        if !text.starts_with(['-', '+']) || text.len() < 2 {
            break;
        }
        let is_short = !text.starts_with("--");
        takes_script |= is_short && text.starts_with('-') && text.contains(['c', 'C']);
        reads_input |= is_short && text.starts_with('-') && text.contains('s');
        if text == "--" {
            at += 1;
            break;
        }
        let takes_value = SHELL_VALUED.contains(&text)
            || matches!(text, "--rcfile" | "--init-file" | "--command" | "--init-command")
            || (is_short && text.len() > 2 && text.ends_with(['o', 'O']));
        at += if takes_value { 2 } else { 1 };
    }
    let rest = words.get(at..).unwrap_or_default();
    found.extend(match rest.split_first() {
        Some((script, arguments)) if takes_script => {
            Some(Inner::Script { script: script.clone(), arguments: arguments.to_vec() })
        }
        Some((file, _)) if !reads_input => Some(file_of(file)),
        Some(_) => Some(Inner::Input),
        None if found.is_empty() => Some(Inner::Input),
        None => None,
    });
    found
}

/// A script in a file: the input, an unknown one, or a program.
fn file_of(file: &Word) -> Inner {
    let text = super::reach::normal(file.text());
    if matches!(text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
        return Inner::Input;
    }
    let is_open = ["/dev/fd/", "/proc/"].iter().any(|prefix| text.starts_with(prefix));
    if is_open || !file.is_closed || file.values.len() != 1 {
        Inner::Unknown
    } else {
        words_of(Vec::new(), false)
    }
}

fn sourced(words: &[Word]) -> Vec<Inner> {
    let file = words.iter().find(|word| !matches!(word.text(), "--" | "-p"));
    file.map(file_of).into_iter().collect()
}

fn alias(word: &Word) -> Option<Inner> {
    let (name, _) = word.text().split_once('=')?;
    Some(script(&without(&format!("{name}="), word)))
}

fn xargs(words: &[Word]) -> Vec<Inner> {
    let mut replaced: Vec<String> =
        values_of(words, &["-I", "-J"]).iter().map(|word| word.text().to_owned()).collect();
    for word in words.iter().take_while(|word| word.is_option()) {
        let glued = word.text().strip_prefix("--replace=").or_else(|| word.text().strip_prefix("-i"));
        replaced.extend(glued.map(|text| if text.is_empty() { "{}".to_owned() } else { text.to_owned() }));
        replaced.extend((word.text() == "--replace").then(|| "{}".to_owned()));
    }
    let (rest, is_sure) = after(words, XARGS_VALUED, XARGS_FLAGS);
    // `-i`, `-l` and `-e` may have an attached value.
    let is_sure = is_sure
        || words.iter().take_while(|word| word.is_option()).all(|word| {
            word.is_fixed && ["-i", "-l", "-e"].iter().any(|prefix| word.text().starts_with(prefix))
        });
    let unknown = |word: &Word| match replaced.iter().any(|text| word.text().contains(text.as_str())) {
        true => Word::unknown(&word.raw),
        false => word.clone(),
    };
    let found = words_of(rest.iter().map(unknown).collect(), replaced.is_empty());
    [found].into_iter().chain((!is_sure).then_some(Inner::Unknown)).collect()
}

fn fd(words: &[Word]) -> Vec<Inner> {
    let mut found = actions(words, FD_ACTIONS);
    for word in words {
        let glued = ["--exec=", "--exec-batch=", "-x", "-X"];
        let value =
            glued.iter().find_map(|prefix| word.text().strip_prefix(prefix)).filter(|rest| !rest.is_empty());
        found.extend(value.map(|value| words_of(vec![Word::fixed(value)], true)));
    }
    found
}

fn found_by(find: &[Word]) -> Origin {
    Origin::Found { find: Rc::new(find.to_vec()), is_split: false }
}

fn actions(words: &[Word], names: &[&str]) -> Vec<Inner> {
    let mut found = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| names.contains(&word.text())) {
        let until = |word: &&Word| !matches!(word.text(), ";" | "+");
        let inner: Vec<Word> = words[at + 1..].iter().take_while(until).cloned().collect();
        // The placeholder for the found file has no known value.
        let unknown = |word: Word| match word.text() {
            "{}" if names == FIND_ACTIONS => Word { origin: Some(found_by(words)), ..Word::unknown("{}") },
            text if text.contains("{}") => Word::unknown(&word.raw),
            _ => word,
        };
        found.push(words_of(inner.into_iter().map(unknown).collect(), false));
    }
    if words.iter().any(|word| word.values.iter().any(|value| value == "-delete")) {
        found.push(words_of(vec![Word::fixed("rm")], true));
    }
    found
}
