//! Permission for actions: those of calls, and those of other work of the model.

use codewright_permission::By;
use codewright_proto::{Action, PermissionRequest, ToolRef};
use codewright_tools::{Ask, Progress, ToolError};
use serde_json::Value;

use super::cx::tool_cx;
use crate::Error;
use crate::extension::Moment;
use crate::extension::moments::ToolCall;
use crate::inner::Inner;
use crate::permission::gate::{Asker, Verdict};
use crate::run::refusal::REJECTED;
use crate::sandbox::enforcement::enforcement;

/// The reason why a call has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The text is reported to the model.
    Told(String),
    /// The turn was aborted.
    Aborted,
}

/// What extensions say about an action.
enum Opinion {
    /// Nothing: the rules and the user decide.
    None,
    /// An extension forbids the action, with its reason.
    Forbids(String),
    /// A hook of the user answers in the user's place.
    Answers,
    /// An extension wants a reply of the user for an action that the rules allow.
    WantsReply,
}

/// Waits until the user or the rules have decided about an action.
pub(crate) async fn gate(inner: &Inner, ask: &Ask, asker: &Asker<'_>) -> Result<By, Failure> {
    let verdict = match opinion(inner, ask, asker).await {
        Ok(Opinion::Forbids(reason)) => return Err(Failure::Told(reason)),
        Ok(Opinion::None) => inner.gate.check(ask, asker).await,
        Ok(Opinion::Answers) => inner.gate.check_granted(ask, asker).await,
        Ok(Opinion::WantsReply) => inner.gate.ask(ask, asker).await,
        Err(error) => Err(error),
    };
    match verdict {
        Ok(Verdict::Granted(by)) => Ok(by),
        Ok(Verdict::Denied(rules)) => {
            let rules = serde_json::to_string(&rules).unwrap_or_default();
            let reason = ask.metadata.get(Ask::REASON).and_then(Value::as_str);
            let reason =
                reason.map(|reason| format!(" It may do anything, because {reason}.")).unwrap_or_default();
            Err(Failure::Told(format!(
                "A permission rule forbids this call.{reason} Rules that speak of it: {rules}"
            )))
        }
        Ok(Verdict::Rejected(None)) => Err(Failure::Told(REJECTED.to_owned())),
        Ok(Verdict::Rejected(Some(message))) => {
            let sentence = REJECTED.trim_end_matches('.');
            Err(Failure::Told(format!("{sentence} with the following feedback: {message}")))
        }
        Ok(Verdict::Cancelled) => Err(Failure::Aborted),
        Err(error) => Err(Failure::Told(format!("The permission request failed: {error}"))),
    }
}

/// Lets the extensions make the answer of the rules stricter, or answer in the place of the user.
async fn opinion(inner: &Inner, ask: &Ask, asker: &Asker<'_>) -> Result<Opinion, Error> {
    let extensions = inner.extensions.find(&asker.instance.directory);
    if !extensions.take(Moment::Permission) {
        return Ok(Opinion::None);
    }
    let action = inner.gate.judge(asker.rules, asker.instance, ask).await?;
    let tool = match (asker.tool.clone(), asker.hook_id) {
        (tool, None) => tool,
        (Some(tool), Some(id)) => Some(ToolRef { call_id: id.to_owned(), ..tool }),
        // Work that is not a call is in no message.
        (None, Some(id)) => Some(ToolRef { message_id: inner.ids.message(), call_id: id.to_owned() }),
    };
    let request = PermissionRequest {
        id: inner.ids.permission(),
        session_id: asker.session_id.clone(),
        permission: ask.permission.to_string(),
        patterns: ask.patterns.clone(),
        metadata: ask.metadata.clone(),
        always: ask.always.clone(),
        tool,
    };
    Ok(match (action, extensions.permission(&request, action).await) {
        (Action::Allow | Action::Ask, (Action::Deny, reason)) => {
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            Opinion::Forbids(format!("An extension of the user forbids this call{reason}"))
        }
        (Action::Ask, (Action::Allow, _)) => Opinion::Answers,
        (Action::Allow, (Action::Ask, _)) => Opinion::WantsReply,
        (Action::Deny, _) | (Action::Allow, (Action::Allow, _)) | (Action::Ask, (Action::Ask, _)) => {
            Opinion::None
        }
    })
}

/// Does the same for work that is not a call. Returns the reason if the action is not allowed.
pub(crate) async fn check_action(inner: &Inner, asker: &Asker<'_>, ask: &Ask) -> Result<(), String> {
    gate(inner, ask, asker).await.map(drop).map_err(reason)
}

/// Checks work that is not a call against the hooks and rules for a call of a tool. Returns the reason if it is not
/// allowed.
pub(crate) async fn check_call(
    inner: &Inner,
    asker: &Asker<'_>,
    tool: &str,
    input: &Value,
) -> Result<(), String> {
    let tool = inner.toolbox.find(tool).ok_or_else(|| format!("there is no tool `{tool}`"))?;
    let extensions = inner.extensions.find(&asker.instance.directory);
    let call_id = inner.ids.part().to_string();
    let of = ToolCall { tool: tool.name(), session: asker.session_id, call_id: &call_id };
    if extensions.tool_before(of, input.clone()).await? != *input {
        // The caller runs the original arguments, so the change of the extension would be lost.
        return Err("an extension changed the call, which is not possible here".to_owned());
    }
    let cx = tool_cx(inner, asker.instance, asker.cancel.clone(), Progress::none());
    let mut asks = tool.asks(input, &cx).await.map_err(|error| reason(failure(error)))?;
    if tool.facts().starts_commands {
        enforcement(inner, asker.instance, asker.rules).await.mark(&mut asks);
    }
    // An answer of a hook to this call must not answer for the one that contains it.
    let asker = Asker { hook_id: Some(&call_id), tool: asker.tool.clone(), ..*asker };
    for ask in &asks {
        check_action(inner, &asker, ask).await?;
    }
    Ok(())
}

fn reason(failure: Failure) -> String {
    match failure {
        Failure::Told(reason) => reason,
        Failure::Aborted => "the question was withdrawn".to_owned(),
    }
}

/// Returns the failure of a call whose tool failed.
pub(crate) fn failure(error: ToolError) -> Failure {
    match error {
        ToolError::Model(message) | ToolError::Broken(message) => Failure::Told(message),
        ToolError::Cancelled(_) => Failure::Aborted,
    }
}
