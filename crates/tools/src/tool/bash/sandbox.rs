//! Notes for the model about the sandbox of a command.
//!
//! A note names a path only if the rules of the sandbox restrict it. The output of the command only suggests which
//! paths to look up, so a text that imitates an error leads to no note about a path that the command can use.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use codewright_workspace::{
    Blocked, Confined, Creation, End, Ended, Mechanism, Network, RefusedHost, normalize,
};

/// The longest list of paths in a note.
const MAX_PATHS: usize = 10;
/// The longest number of a port.
const MAX_PORT_DIGITS: usize = 5;
/// The number of paths in an output that are looked up.
const MAX_CANDIDATES: usize = 40;
/// The longest text that can be a path.
const MAX_PATH_BYTES: usize = 4096;
/// The part of an output that is searched for errors.
const SEARCHED_BYTES: usize = 16 * 1024;
/// The commands of git that create repositories.
const CREATING: &[&str] = &["git clone", "git init", "git submodule add", "git worktree add"];
/// Messages of programs that could not write in namespaces: the file system is read-only, or the file is a mount.
const NOT_WRITTEN: &[&str] =
    &["Read-only file system", "EROFS", "Device or resource busy", "EBUSY", "cross-device", "EXDEV"];
/// Messages of programs that could not write with other mechanisms.
const NOT_PERMITTED: &[&str] =
    &["Permission denied", "EACCES", "Operation not permitted", "EPERM", "cross-device", "EXDEV"];
/// Messages of programs that did not find a file.
const NOT_FOUND: &[&str] =
    &["No such file", "ENOENT", "not found", "cannot find", "Permission denied", "EACCES"];
/// Messages of programs that could not connect.
const NOT_CONNECTED: &[&str] = &[
    "Network is unreachable",
    "ENETUNREACH",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "EAI_AGAIN",
    "ENOTFOUND",
    "no such host",
    "dns error",
    "failed to lookup address",
];
/// Characters around paths in messages.
const AROUND: &[char] = &[
    '\'', '"', '`', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '(', ')', '[', ']', '<', '>', ',', ';',
    ':', '.',
];

/// Returns notes about what the sandbox prevented. `line` is the command line.
pub(crate) fn notes(confined: &Confined, ended: &Ended, directory: &Path, line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut request = Request::default();
    let refused: Vec<&PathBuf> = ended.refused_names.iter().take(MAX_PATHS).collect();
    if !refused.is_empty() {
        let names: Vec<String> = refused.iter().map(|path| format!("`{}`", path.display())).collect();
        let names = names.join(", ");
        found
            .push(format!("The command tried to create or change protected files and was refused: {names}."));
        found.extend(two_calls(&refused, line));
        request.write.extend(refused.into_iter().cloned());
    }
    if !matches!(ended.end, End::Exited(0)) {
        let tail = ended.output.tail(SEARCHED_BYTES);
        let blocked = blocked_paths(confined, &tail, directory);
        for (path, blocked) in blocked.into_iter().filter(|(path, _)| !ended.refused_names.contains(path)) {
            let shown = path.display();
            match blocked {
                // Only what exists in a hidden directory can be granted.
                Blocked::Hidden if !path.exists() => {
                    found.push(format!("`{shown}` is in a hidden directory, where commands create nothing."));
                }
                Blocked::Hidden => {
                    found.push(format!("`{shown}` is hidden."));
                    request.read.push(path);
                }
                Blocked::Protected => {
                    found.push(format!("`{shown}` is protected."));
                    request.write.push(path);
                }
                Blocked::ReadOnly => {
                    found.push(format!("`{shown}` is read-only."));
                    request.write.push(path);
                }
            }
        }
        if confined.sandbox.network != Network::Open && has(&tail, NOT_CONNECTED) {
            let reason = match confined.sandbox.network {
                Network::Proxy(_) => {
                    "Programs have only the network that the proxy in their environment provides."
                }
                Network::Off | Network::Open => "The network is off.",
            };
            found.push(reason.to_owned());
            request.has_network = true;
        }
    }
    let mut notes = Vec::new();
    if !found.is_empty() {
        let advice = request.advice();
        let found = found.join(" ");
        notes.push(format!("The command ran in a sandbox, which prevented something. {found}{advice}"));
    }
    notes.extend(refusals(&ended.refused));
    let is_failed = !matches!(ended.end, End::Exited(0));
    if is_failed && ended.refused.is_empty() && !asks_for_ports(confined) {
        notes.extend(closed_ports(&format!("{line}\n{}", ended.output.tail(SEARCHED_BYTES))));
    }
    notes
}

/// Returns the advice for a line that creates a repository and does something else with it.
fn two_calls(refused: &[&PathBuf], line: &str) -> Option<String> {
    let refused = refused.iter().find(|path| path.ends_with(".git"))?;
    let creating = CREATING.iter().find(|words| line.contains(**words))?;
    line.contains([';', '|', '&', '\n']).then(|| {
        format!(
            "A line can create `{}` if all its commands are of git. Make two calls: `{creating} …` alone, and then the other \
             commands.",
            refused.display()
        )
    })
}

/// Whether a command that connects to a port of this machine reaches it, or the user is asked.
fn asks_for_ports(confined: &Confined) -> bool {
    match confined.sandbox.network {
        Network::Open => true,
        Network::Off => false,
        Network::Proxy(_) => matches!(confined.mechanism, Mechanism::Bubblewrap(_, _, Creation::Checked)),
    }
}

/// Returns a note about ports of this machine that a failed command may have wanted, by its line and its output. Clients such
/// as `curl -s` print nothing.
fn closed_ports(text: &str) -> Option<String> {
    let names = ["localhost", "127.0.0.1", "[::1]"];
    if !names.iter().any(|name| text.contains(name)) {
        return None;
    }
    let mut ports: Vec<String> = Vec::new();
    let after = names.iter().flat_map(|name| text.split(*name).skip(1));
    for rest in after.filter_map(|rest| rest.strip_prefix(':')) {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).take(MAX_PORT_DIGITS).collect();
        let port = format!("`localhost:{digits}`");
        if !digits.is_empty() && !ports.contains(&port) && ports.len() < MAX_PATHS {
            ports.push(port);
        }
    }
    let named = if ports.is_empty() { "no port".to_owned() } else { format!("not {}", ports.join(", ")) };
    Some(format!(
        "Ports of this machine are closed for commands here, because the sandbox cannot ask about them: the command reaches \
         {named} of programs outside, and `localhost` is its own. If it needs one, call the tool again with the \
         additional argument `\"sandbox\": {{\"network\": \"open\"}}`, about which the user is asked. The user can open them \
         for all commands with `\"sandbox\": {{\"network\": \"open\"}}` in the configuration."
    ))
}

/// The wider access that the model can request.
#[derive(Default)]
struct Request {
    write: Vec<PathBuf>,
    read: Vec<PathBuf>,
    has_network: bool,
}

impl Request {
    fn advice(&self) -> String {
        let list = |paths: &[PathBuf]| {
            let texts = paths.iter().map(|path| path.to_string_lossy().into_owned());
            serde_json::json!(texts.collect::<Vec<_>>())
        };
        let mut wider = serde_json::Map::new();
        for (key, paths) in [("write", &self.write), ("read", &self.read)] {
            if !paths.is_empty() {
                wider.insert(key.to_owned(), list(paths));
            }
        }
        if self.has_network {
            wider.insert("network".to_owned(), "open".into());
        }
        if wider.is_empty() {
            return " Do not try to avoid the sandbox; tell the user what the command needs.".to_owned();
        }
        format!(
            " Do not try to avoid the sandbox. If the command needs this, call the tool again with the additional \
             argument `\"sandbox\": {}`, reduced to what is needed; the user is asked.",
            serde_json::Value::Object(wider)
        )
    }
}

fn has(text: &str, messages: &[&str]) -> bool {
    messages.iter().any(|message| text.contains(message))
}

/// The paths in the errors of an output that the sandbox restricts in a way that explains the error.
fn blocked_paths(confined: &Confined, output: &str, directory: &Path) -> Vec<(PathBuf, Blocked)> {
    let written = match confined.mechanism {
        Mechanism::Bubblewrap(..) => NOT_WRITTEN,
        Mechanism::Landlock(_) | Mechanism::Seatbelt | Mechanism::Nothing => NOT_PERMITTED,
    };
    let mut looked_up: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for line in output.lines().rev() {
        let (is_write, is_read) = (has(line, written), has(line, NOT_FOUND));
        for path in candidates(line, directory).into_iter().filter(|_| is_write || is_read) {
            if looked_up.len() == MAX_CANDIDATES || found.len() == MAX_PATHS {
                return found;
            }
            if looked_up.contains(&path) {
                continue;
            }
            // Without the rules nothing is explained.
            let blocked = |path: &Path| confined.sandbox.blocked(path, &confined.mechanism).ok().flatten();
            // A new file in a hidden directory is hidden, too.
            let above = || path.parent().and_then(blocked).filter(|above| *above == Blocked::Hidden);
            let blocked = blocked(&path).or_else(|| above().filter(|_| is_write));
            looked_up.push(path.clone());
            let explains = |blocked: &Blocked| match blocked {
                Blocked::Hidden => is_read || is_write,
                Blocked::Protected | Blocked::ReadOnly => is_write,
            };
            found.extend(blocked.filter(explains).map(|blocked| (path, blocked)));
        }
    }
    found
}

/// The line without the program that prints it: `/bin/bash: line 1: out/x: Read-only file system`.
fn without_program(line: &str) -> &str {
    let Some((program, rest)) = line.split_once(": ") else { return line };
    let is_program = |file: std::fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    let is_program = program.starts_with('/') && std::fs::metadata(program).is_ok_and(is_program);
    if is_program { rest } else { line }
}

/// The texts of a line that may be paths.
fn candidates(line: &str, directory: &Path) -> Vec<PathBuf> {
    let line = without_program(line);
    let quoted = line.split(['\'', '"', '`', '\u{2018}', '\u{2019}']).skip(1).step_by(2);
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '=' | '\'' | '"'));
    let texts = quoted.chain(words).map(|text| text.trim_end_matches(AROUND));
    let texts = texts.map(|text| text.trim_start_matches(|c| c != '.' && AROUND.contains(&c)));
    let mut paths: Vec<PathBuf> = Vec::new();
    for text in texts.filter(|text| text.len() <= MAX_PATH_BYTES) {
        let is_name = || directory.join(text).symlink_metadata().is_ok();
        if text.is_empty() || !(text.contains('/') || text.starts_with('.') || is_name()) {
            continue;
        }
        let path = normalize(&directory.join(text));
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Returns a note about the hosts that a command could not reach.
fn refusals(refused: &[RefusedHost]) -> Option<String> {
    let rule = refused.iter().find_map(|refused| refused.rule.as_ref());
    let rule =
        rule.map(|rule| format!(" The user can allow a host with a rule in the configuration: {rule}."));
    // Hosts with the same reason share it.
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for one in refused {
        let host = format!("`{}`", one.host);
        match reasons.iter_mut().find(|(reason, _)| *reason == one.reason) {
            Some((_, hosts)) => hosts.push(host),
            None => reasons.push((&one.reason, vec![host])),
        }
    }
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, hosts)| format!("{} ({reason})", hosts.join(", "))).collect();
    (!refused.is_empty()).then(|| {
        format!(
            "The sandbox refused connections of the command: {}.{} Do not try to reach these hosts in another way.",
            reasons.join("; "),
            rule.unwrap_or_default()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_with_an_address_of_this_machine_learns_that_its_ports_are_closed() {
        for (text, expected) in [
            ("curl -s http://localhost:3000/x\n", Some("`localhost:3000`")),
            ("curl -s 127.0.0.1:80 [::1]:8080\n", Some("`localhost:80`, `localhost:8080`")),
            ("node client.js\nconnect ECONNREFUSED 127.0.0.1:5432", Some("`localhost:5432`")),
            ("ping localhost\n", Some("no port")),
            ("make\nfailed", None),
        ] {
            let found = closed_ports(text);
            assert_eq!(found.is_some(), expected.is_some(), "{text}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{text}");
        }
    }

    #[test]
    fn the_paths_of_an_error_are_found() {
        for (line, expected) in [
            ("touch: cannot touch '/etc/x y': Read-only file system", "/etc/x y"),
            ("sh: 1: cannot create /etc/x: Read-only file system", "/etc/x"),
            ("error: could not lock config file .git/config: Read-only file system", "/work/.git/config"),
            ("OSError: [Errno 30] Read-only file system: '/srv/data'", "/srv/data"),
            ("Error: EROFS: read-only file system, open '../other/file'", "/other/file"),
            ("open /root/go/pkg/mod/cache.lock: read-only file system", "/root/go/pkg/mod/cache.lock"),
        ] {
            let found = candidates(line, Path::new("/work"));
            assert!(found.contains(&PathBuf::from(expected)), "{line}: {found:?}");
        }
        let shell = "/bin/sh: line 1: out/x: Read-only file system";
        assert_eq!(candidates(shell, Path::new("/work")), [Path::new("/work/out/x")]);
        assert_eq!(candidates("no path here at all", Path::new("/work")), Vec::<PathBuf>::new());
    }
}
