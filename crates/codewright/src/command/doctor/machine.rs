//! The machine: programs, terminal, proxies and disk. Nothing is started.

use std::io::IsTerminal as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use codewright_config::{Dirs, Env, env};

use super::Finding;

/// The space below which databases and outputs soon fail, and below which the user should know it.
const LEAST_BYTES: u64 = 100 << 20;
const LITTLE_BYTES: u64 = 1 << 30;
/// Programs that some features start, with the feature.
const TOOLS: [(&str, &str); 4] = [
    ("node", "plugins"),
    ("npm", "packages of plugins"),
    ("bwrap", "the complete sandbox of Linux"),
    ("gh", "GitHub"),
];
/// The usual language servers.
const LANGUAGE_SERVERS: [&str; 6] =
    ["rust-analyzer", "gopls", "clangd", "typescript-language-server", "pyright-langserver", "zls"];
/// Programs that reach the clipboard of a desktop.
const CLIPBOARDS: [&str; 5] = ["wl-copy", "xclip", "xsel", "pbcopy", "clip.exe"];

pub(super) fn examine(env: &Env) -> Vec<Finding> {
    vec![git(env), proxy(env), terminal(env), tools(env), language_servers(env), disk(env)]
}

fn git(env: &Env) -> Finding {
    match find(env, "git") {
        Some(path) => Finding::ok("git", path.display().to_string()),
        None => Finding::failed("git", "not on PATH", "install git: undo, worktrees and diffs use it"),
    }
}

fn proxy(env: &Env) -> Finding {
    let set: Vec<_> = env::NETWORK.iter().copied().filter(|name| env.filled(name).is_some()).collect();
    let files = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].into_iter().filter(|name| set.contains(name));
    for name in files {
        let path = PathBuf::from(env.filled(name).unwrap_or_default());
        if !path.is_file() {
            let detail = format!("{name} names a file that does not exist");
            return Finding::failed("proxy", detail, "correct the variable, or remove it");
        }
    }
    match set.is_empty() {
        true => Finding::ok("proxy", "none; certificates of the system"),
        // The values may contain passwords.
        false => Finding::ok("proxy", format!("set by {}", set.join(", "))),
    }
}

fn terminal(env: &Env) -> Finding {
    let term = env.filled(env::TERM).unwrap_or("unknown");
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let is_full =
        env.filled(env::COLORTERM).is_some_and(|it| it.contains("truecolor") || it.contains("24bit"));
    let colours = match (env.filled(env::NO_COLOR).is_some(), is_full) {
        (true, _) => "no colours (NO_COLOR)",
        (false, true) => "full colours",
        (false, false) => "256 colours",
    };
    let program = env.filled(env::TERM_PROGRAM).unwrap_or_default();
    let has_pictures = [term, program]
        .iter()
        .any(|it| ["kitty", "ghostty", "WezTerm", "iTerm"].iter().any(|name| it.contains(name)));
    let clipboard = CLIPBOARDS.into_iter().find(|name| find(env, name).is_some());
    let within = if env.filled(env::TMUX).is_some() { ", in tmux" } else { "" };
    let detail = format!(
        "{term}{within}, {colours}, clipboard by {}, pictures {}",
        clipboard.unwrap_or("OSC 52"),
        if has_pictures { "shown" } else { "not shown" }
    );
    match (term, is_terminal) {
        ("dumb" | "unknown", true) => Finding::warning(
            "terminal",
            detail,
            "set TERM to the name of your terminal, such as xterm-256color",
        ),
        _ if env.filled(env::TMUX).is_some() && clipboard.is_none() => {
            Finding::warning("terminal", detail, "for copies, run `tmux set -g set-clipboard on`")
        }
        _ => Finding::ok("terminal", detail),
    }
}

fn tools(env: &Env) -> Finding {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (name, feature) in TOOLS {
        match find(env, name) {
            Some(_) => found.push(name.to_owned()),
            None => missing.push(format!("{name} ({feature})")),
        }
    }
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    let missing =
        if missing.is_empty() { String::new() } else { format!("; not installed: {}", missing.join(", ")) };
    Finding::ok("tools", format!("on PATH: {found}{missing}"))
}

fn language_servers(env: &Env) -> Finding {
    let found: Vec<_> = LANGUAGE_SERVERS.into_iter().filter(|name| find(env, name).is_some()).collect();
    let detail =
        if found.is_empty() { "none of the usual ones on PATH".to_owned() } else { found.join(", ") };
    Finding::ok("languages", detail)
}

fn disk(env: &Env) -> Finding {
    let Ok(dirs) = Dirs::new(env) else {
        return Finding::failed("disk", "HOME is not set", "set HOME to your home directory");
    };
    // Before the first session the directory is missing.
    let existing = dirs.data.ancestors().find(|path| path.exists());
    let free = existing.map(codewright_workspace::free_bytes);
    let shown = dirs.data.display();
    match free {
        Some(Ok(bytes)) if bytes < LEAST_BYTES => {
            let detail = format!("{} MiB free for {shown}", bytes >> 20);
            Finding::failed("disk", detail, "free some space: sessions cannot be stored soon")
        }
        Some(Ok(bytes)) if bytes < LITTLE_BYTES => {
            let detail = format!("{} MiB free for {shown}", bytes >> 20);
            Finding::warning("disk", detail, "free some space")
        }
        Some(Ok(bytes)) => Finding::ok("disk", format!("{} GiB free for {shown}", bytes >> 30)),
        Some(Err(error)) => Finding::warning("disk", error.to_string(), format!("check {shown}")),
        None => Finding::warning("disk", format!("{shown} does not exist"), "check HOME"),
    }
}

/// Returns the program of that name on `PATH`.
fn find(env: &Env, name: &str) -> Option<PathBuf> {
    let directories = std::env::split_paths(env.filled(env::PATH)?);
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    directories.map(|directory| directory.join(name)).find(is_program)
}
