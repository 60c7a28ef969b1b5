//! What users may decide: permission rules of their sessions, replies to permission requests, answers to questions.
//!
//! A user decides about ordinary work of the own sessions. What would reach the things of others, or lead out of the
//! sandbox, is for administrators.

use std::path::{Path, PathBuf};

use codewright_engine::{self as engine, Resource};
use codewright_proto::{
    Action, PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, QuestionId, Rule,
};

use super::{Caller, Who, directories, record};
use crate::Error;
use crate::state::App;

/// The permissions whose patterns are paths, relative to the worktree.
const ABOUT_PATHS: [&str; 3] = ["read", "edit", "list"];
/// Why a request or a rule is for administrators.
const WIDER: Error =
    Error::Forbidden { why: "only administrators permit access outside of a session's directory or sandbox" };

/// Fails if a rule of a user could permit to leave the directory of a session.
pub(crate) fn check_rules<'a>(who: &Who, rules: impl IntoIterator<Item = &'a Rule>) -> Result<(), Error> {
    if who.limited().is_none() {
        return Ok(());
    }
    let widens = |rule: &Rule| rule.action != Action::Deny && engine::reserved(&rule.permission).is_some();
    if rules.into_iter().any(widens) { Err(WIDER) } else { Ok(()) }
}

/// Returns the reply of a user to a permission request as it counts.
///
/// "Always" covers later requests of the owner of the session. From another user it counts once.
///
/// # Errors
///
/// Fails if the reply would permit a path that the user may not use. The engine checks what else only administrators
/// permit.
pub(crate) async fn check_reply(
    app: &App,
    who: &Who,
    id: &PermissionId,
    answer: PermissionAnswer,
) -> Result<PermissionAnswer, Error> {
    let is_grant = answer.reply != PermissionReply::Reject;
    let Some(caller) = who.limited().filter(|_| is_grant) else { return Ok(answer) };
    let mut pending = app.engine.permissions().pending().await?.into_iter();
    let Some(request) = pending.find(|request| request.id == *id) else {
        // A request that is not known here cannot be checked, so it is refused.
        return Err(engine::Error::NotFound { resource: Resource::Permission, id: id.to_string() }.into());
    };
    let session = app.engine.sessions().get(&request.session_id).await?;
    // A client that makes a request chooses its policy, but an approval would count for the connections of commands.
    let patterns = || request.patterns.iter().chain(&request.always).chain(&answer.wider);
    if patterns().any(|pattern| engine::names_private_host(&request.permission, pattern)) {
        return Err(WIDER);
    }
    let directory = Path::new(&session.directory);
    if is_about_paths(&request) && !are_permitted(app, caller, directory, patterns()).await? {
        return Err(WIDER);
    }
    let is_own = session.access.is_some_and(|access| access.owner == *caller.name);
    Ok(match answer.reply {
        PermissionReply::Always if !is_own => {
            PermissionAnswer { reply: PermissionReply::Once, wider: Vec::new(), ..answer }
        }
        PermissionReply::Always | PermissionReply::Once | PermissionReply::Reject => answer,
    })
}

fn is_about_paths(request: &PermissionRequest) -> bool {
    ABOUT_PATHS.contains(&request.permission.as_str())
}

/// Whether all paths in the patterns of a directory are those of users.
async fn are_permitted(
    app: &App,
    caller: &Caller,
    directory: &Path,
    patterns: impl Iterator<Item = &String>,
) -> Result<bool, Error> {
    let instance = app.engine.instance(directory).await?;
    let root = PathBuf::from(&instance.path().worktree);
    for pattern in patterns {
        let fixed = pattern.split(['*', '?']).next().unwrap_or_default();
        // A pattern for everything is limited by the permission to leave the directory.
        if fixed.is_empty() {
            continue;
        }
        let is_home = fixed.starts_with(['~', '$']);
        let path = root.join(fixed);
        let existing = path.ancestors().find(|above| above.symlink_metadata().is_ok());
        let is_permitted = match existing {
            Some(existing) => directories::permits(app, caller, existing).await,
            None => false,
        };
        if is_home || !is_permitted || has_parent(&path) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_parent(path: &Path) -> bool {
    path.components().any(|part| part == std::path::Component::ParentDir)
}

/// Answers a question for the sender of a request, or rejects it. Who may see the question is checked before.
///
/// # Errors
///
/// Fails if only an administrator may answer it.
pub(crate) async fn answer_question(
    app: &App,
    who: &Who,
    id: &QuestionId,
    answers: Option<Vec<Vec<String>>>,
) -> Result<(), Error> {
    let questions = app.engine.questions();
    let is_trust = questions.is_about_trust(id);
    let shown: String = match &answers {
        Some(answers) if is_trust => {
            answers.iter().flatten().flat_map(|answer| answer.chars()).take(40).collect()
        }
        Some(_) => "answered".to_owned(),
        None => "rejected".to_owned(),
    };
    questions.answer_as(who.principal(), id, answers)?;
    let action = if is_trust { "trust.question" } else { "question.answer" };
    record(app, who, [action, id.as_str(), &shown]).await;
    Ok(())
}
