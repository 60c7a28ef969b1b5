//! The effects of variables that a command line sets.

use super::options::values_of;
use super::scan;
use super::word::Word;
use super::wrapper::{Inner, script, without};

/// Variables whose value some program runs as a command line.
const COMMAND_VARIABLES: &[&str] = &[
    "BROWSER",
    "EDITOR",
    "FCEDIT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSEDIT",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "PSQL_PAGER",
    "RIPGREP_PRE",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "SHELL",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_RSH",
    "VISUAL",
];
/// Variables that make programs run code which the line does not show.
const CODE_VARIABLES: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "GCONV_PATH",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "HOME",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LESSKEY",
    "LESSKEYIN",
    "LESSKEY_CONTENT",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "TAR_OPTIONS",
    "XDG_CONFIG_HOME",
    "ZDOTDIR",
];
/// The usual directories of programs.
const PROGRAM_DIRECTORIES: &[&str] =
    &["/bin", "/usr", "/sbin", "/opt", "/nix", "/snap", "/Library", "/System", "/home/linuxbrew"];

/// The commands that programs run because a variable is set.
pub(super) fn effects(name: &str, value: &Word) -> Vec<Inner> {
    if COMMAND_VARIABLES.contains(&name) {
        // Almost always a shell.
        let is_shell = name == "SHELL" && value.is_fixed && value.text().ends_with("sh");
        return if is_shell { Vec::new() } else { vec![script(value)] };
    }
    // They define aliases, known programs and exported functions.
    if ["BASH_ALIASES", "BASH_CMDS", "BASH_FUNC_"].iter().any(|prefix| name.starts_with(prefix)) {
        return vec![script(value), Inner::Unknown];
    }
    let is_code = CODE_VARIABLES.contains(&name)
        || name.starts_with("GIT_CONFIG_")
        || (name.starts_with("CARGO_") && name.ends_with("_RUNNER"))
        || (name.starts_with("CARGO_") && name.ends_with("_LINKER"))
        || (name == "NODE_OPTIONS"
            && ["-r", "require", "import", "loader"].iter().any(|o| value.text().contains(o)));
    // Shells read the file in `ENV`. Other programs use it for `production` and the like.
    let is_code = is_code || (name == "ENV" && (!value.is_closed || value.text().contains(['/', '.'])));
    let is_code = is_code || (name == "PATH" && !is_usual_path(value));
    let mut found = if is_code { vec![Inner::Unknown] } else { Vec::new() };
    // Prompts are expanded like commands.
    if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
        let scripts = value.values.iter().flat_map(|value| scan::substitutions(value));
        found.extend(scripts.map(|text| script(&Word::fixed(text))));
        found.extend((!value.is_closed).then_some(Inner::Unknown));
    }
    found
}

/// Whether programs are found where they were before, or in directories of the system.
fn is_usual_path(value: &Word) -> bool {
    let text = value.raw.trim_matches(['"', '\'']);
    let mut comes_after = false;
    text.split(':').all(|entry| {
        comes_after |= matches!(entry, "$PATH" | "${PATH}");
        let is_usual = ["~/", "$HOME/", "${HOME}/"].iter().any(|home| entry.starts_with(home))
            || PROGRAM_DIRECTORIES.iter().any(|directory| {
                entry.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
        comes_after || (is_usual && !entry.contains(".."))
    })
}

/// The variables that a command sets with its words: `env A=b`, `export A=b`.
pub(super) fn assignments(name: &str, words: &[Word]) -> Vec<(String, Word)> {
    if !matches!(name, "env" | "export" | "declare" | "typeset" | "readonly" | "local" | "sudo" | "doas") {
        return Vec::new();
    }
    let pair = |word: &Word| {
        let (name, _) = word.text().split_once('=')?;
        let is_name = !name.is_empty()
            && (name.starts_with("BASH_") || name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        let raw = word.raw.trim_start_matches(['"', '\'']).strip_prefix(&format!("{name}="));
        let value = without(&format!("{name}="), word);
        let value = Word { raw: raw.map_or_else(|| value.text().to_owned(), str::to_owned), ..value };
        is_name.then(|| (name.to_owned(), value))
    };
    words.iter().skip(1).filter_map(pair).collect()
}

/// The variables that a builtin sets to its input or a computed value.
pub(super) fn computed_variables(name: &str, words: &[Word]) -> Vec<String> {
    let rest = words.get(1..).unwrap_or_default();
    let names: Vec<Word> = match name {
        "printf" | "wait" => values_of(rest, &["-v", "-p"]),
        "read" | "mapfile" | "readarray" | "getopts" | "unset" => rest.to_vec(),
        _ => Vec::new(),
    };
    names.into_iter().flat_map(|word| word.values).collect()
}

/// Whether a variable affects what the shell or a program runs.
pub(super) fn is_special(name: &str) -> bool {
    let name = name.split('[').next().unwrap_or_default();
    matches!(name, "PATH" | "ENV" | "PS0" | "PS1" | "PS2" | "PS4" | "BASH_ALIASES" | "BASH_CMDS")
        || COMMAND_VARIABLES.contains(&name)
        || CODE_VARIABLES.contains(&name)
        || name.starts_with("GIT_")
}
