//! What requests of users name besides their session: files of prompts, and permission rules.
//!
//! A user works with the rights of the server's account. So a prompt must not attach a file that users may not read, such as
//! the database of all sessions, and a user must not permit what would reach it.

use std::path::{Path, PathBuf};

use codewright_proto::{Action, PartInput, PermissionId, PermissionReply, Rule, SessionId};
use percent_encoding::percent_decode_str;

use super::{Who, directories};
use crate::Error;
use crate::state::App;

/// The permission to leave the directory of a session. Only administrators grant it.
pub(super) const OUTSIDE: &str = "external_directory";

/// Fails if a prompt attaches a file that its sender may not read.
pub(crate) async fn check_parts(app: &App, who: &Who, parts: &[PartInput]) -> Result<(), Error> {
    let Some(caller) = who.limited() else { return Ok(()) };
    for part in parts {
        let PartInput::File { url, .. } = part else { continue };
        if let Some(path) = file_path(url)
            && !directories::permits(app, caller, &path).await
        {
            return Err(Error::Forbidden { why: "users may not attach files outside of their directories" });
        }
    }
    Ok(())
}

/// Fails if the arguments of a command name a file with `@` that its sender may not read.
pub(crate) async fn check_arguments(
    app: &App,
    who: &Who,
    session: &SessionId,
    arguments: &str,
) -> Result<(), Error> {
    let Some(caller) = who.limited() else { return Ok(()) };
    let directory = PathBuf::from(app.engine.sessions().get(session).await?.directory);
    for name in arguments.split('@').skip(1) {
        let name = name.split_whitespace().next().unwrap_or_default();
        let is_elsewhere = name.starts_with(['/', '~', '$']) || name.split('/').any(|part| part == "..");
        let path = directory.join(name);
        let exists = tokio::fs::symlink_metadata(&path).await.is_ok();
        if is_elsewhere || (exists && !directories::permits(app, caller, &path).await) {
            return Err(Error::Forbidden { why: "users may not attach files outside of their directories" });
        }
    }
    Ok(())
}

/// Fails if a rule of a user could permit to leave the directory of a session.
pub(crate) fn check_rules<'a>(who: &Who, rules: impl IntoIterator<Item = &'a Rule>) -> Result<(), Error> {
    if who.limited().is_none() {
        return Ok(());
    }
    let widens = |rule: &Rule| rule.action != Action::Deny && may_match(&rule.permission);
    if rules.into_iter().any(widens) {
        return Err(Error::Forbidden {
            why: "only administrators permit access outside of a session's directory",
        });
    }
    Ok(())
}

/// Fails if a reply of a user would permit a path that the user may not read.
pub(crate) async fn check_reply(
    app: &App,
    who: &Who,
    id: &PermissionId,
    reply: PermissionReply,
) -> Result<(), Error> {
    let Some(caller) = who.limited().filter(|_| reply != PermissionReply::Reject) else { return Ok(()) };
    let pending = app.engine.permissions().pending().await?;
    let Some(request) = pending.into_iter().find(|request| request.id == *id) else { return Ok(()) };
    let mut is_outside = may_match(&request.permission);
    for path in request.patterns.iter().filter(|pattern| pattern.starts_with('/')) {
        let path = path.trim_end_matches(['*', '/']);
        let above = Path::new(path).ancestors().find(|above| above.exists());
        is_outside |= match above {
            Some(above) => !directories::permits(app, caller, above).await,
            None => true,
        };
    }
    if is_outside {
        return Err(Error::Forbidden {
            why: "only administrators permit access outside of a session's directory",
        });
    }
    Ok(())
}

/// Whether the name of a permission in a rule may stand for [`OUTSIDE`].
pub(super) fn may_match(name: &str) -> bool {
    name.contains(['*', '?', '[', '{']) || name.trim().eq_ignore_ascii_case(OUTSIDE)
}

/// Returns the path of a `file:` URL, in any spelling that the engine might accept.
fn file_path(url: &str) -> Option<PathBuf> {
    let (scheme, rest) = url.split_once(':')?;
    if !scheme.trim().eq_ignore_ascii_case("file") {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        Some(rest) => &rest[rest.find('/').unwrap_or(rest.len())..],
        None => rest,
    };
    let decoded = percent_decode_str(path).decode_utf8_lossy().into_owned();
    Some(Path::new("/").join(decoded.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_file_url_is_recognized() {
        for (url, expected) in [
            ("file:///etc/passwd", Some("/etc/passwd")),
            ("FILE://localhost/etc/passwd", Some("/etc/passwd")),
            ("file:/etc/passwd?start=1#x", Some("/etc/passwd")),
            ("file:///etc/%70asswd", Some("/etc/passwd")),
            ("data:text/plain,file:///etc", None),
            ("https://example/etc", None),
        ] {
            assert_eq!(file_path(url), expected.map(PathBuf::from), "{url}");
        }
    }

    #[test]
    fn a_rule_with_wildcards_may_stand_for_any_permission() {
        for (name, expected) in
            [("*", true), ("external_directory", true), ("ext*", true), ("bash", false), ("read", false)]
        {
            assert_eq!(may_match(name), expected, "{name}");
        }
    }
}
