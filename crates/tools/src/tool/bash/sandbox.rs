//! Notes for the model about the sandbox of a command.

use codewright_workspace::{Confined, End, Ended, Network, RefusedHost};

/// The longest list of paths in a note.
const MAX_PATHS: usize = 10;
/// The part of an output that is searched for errors.
const SEARCHED_BYTES: usize = 16 * 1024;
/// Messages of programs that could not write or connect.
const ERRORS: [&str; 7] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "EAI_AGAIN",
];

/// Returns a note about protected files that the command created, and one about the sandbox if it explains a failure.
pub(super) fn notes(confined: &Confined, ended: &Ended) -> Vec<String> {
    let mut notes = Vec::new();
    if !ended.renamed.is_empty() {
        let renamed = ended.renamed.iter().take(MAX_PATHS);
        let renamed: Vec<String> =
            renamed.map(|one| format!("`{}` to `{}`", one.from.display(), one.to.display())).collect();
        notes.push(format!(
            "The command created protected files, which needs permission. They were renamed: {}.",
            renamed.join(", ")
        ));
    }
    notes.extend(refusals(&ended.refused));
    let tail = ended.output.tail(SEARCHED_BYTES);
    let has_failed = !matches!(ended.end, End::Exited(0));
    if has_failed && ERRORS.iter().any(|error| tail.contains(error)) {
        let write = confined.sandbox.write.iter().filter(|path| path.exists()).take(MAX_PATHS);
        let mut write: Vec<String> = write.map(|path| format!("`{}`", path.display())).collect();
        write.push("the temporary directory".to_owned());
        let network = match confined.sandbox.network {
            Network::Open => "open",
            Network::Proxy(_) => "reached only through the proxy of `HTTP_PROXY` and `ALL_PROXY`",
            Network::Off => "off",
        };
        notes.push(format!(
            "The command ran in a sandbox. It can write only {}; control files and credentials are out of reach; the \
             network is {network}. If it failed for this reason, do not try to avoid the sandbox: tell the user which \
             path or host the command needs. The user can add paths to `sandbox.write` in the configuration.",
            write.join(", ")
        ));
    }
    notes
}

/// Returns a note about the hosts that a command could not reach.
pub(crate) fn refusals(refused: &[RefusedHost]) -> Option<String> {
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
