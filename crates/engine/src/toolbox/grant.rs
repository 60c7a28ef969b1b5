//! The permissions of one call: requested before it starts, and checked again right before it runs.
//!
//! The user may take hours to answer while other calls run, and a link may have another target by then. So
//! the effects are determined again before the call runs, and permission is requested for new ones.

use std::sync::Arc;
use std::time::Duration;

use codewright_proto::ToolRef;
use codewright_tools::{AnyTool, Ask, Bash, Implied, Progress, Task, Tool as _, ToolCx};
use serde_json::Value;

use super::call::{CallCx, Failure, failure, within};
use super::context::tool_cx;
use crate::engine::Inner;
use crate::instance::Instance;
use crate::permission::gate::{Asker, By, Verdict};
use crate::run::next::REJECTED;
use crate::run::recorder::Call;

/// The time limit for determining the permissions that a call needs.
const ASKS_DEADLINE: Duration = Duration::from_secs(5 * 60);
/// The number of times that the effects of a call may change before it is given up.
const MAX_CHANGES: usize = 5;

/// The permissions that a call was granted so far.
pub(super) struct Granted {
    asks: Vec<Ask>,
    tool: ToolRef,
}

impl CallCx {
    /// Requests a permission, if the rules do not decide.
    pub(super) async fn gate(&self, ask: &Ask, tool: Option<ToolRef>) -> Result<By, Failure> {
        let asker = Asker {
            session_id: &self.session_id,
            instance: &self.instance,
            rules: &self.caller.rules,
            tool,
            cancel: &self.cancel,
        };
        gate(&self.inner, ask, &asker).await
    }

    /// Requests all permissions that a call needs.
    pub(super) async fn granted(
        &self,
        call: &Call,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<Granted, Failure> {
        let mut granted = Granted { asks: Vec::new(), tool: self.tool_ref(call) };
        self.ask_for_more(&mut granted, tool, input, cx).await?;
        Ok(granted)
    }

    /// Requests permission for effects that are new since the last request.
    pub(super) async fn still_granted(
        &self,
        mut granted: Granted,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<(), Failure> {
        for _ in 0..MAX_CHANGES {
            // Only a question takes time in which something else may change. Rules decide at once, also about a
            // call whose effects differ each time, such as one that lists the running processes.
            if self.ask_for_more(&mut granted, tool, input, cx).await? == By::Rules {
                return Ok(());
            }
        }
        Err(Failure::Message("The effects of the call keep changing, so it was not made.".to_owned()))
    }

    /// Requests permission for everything new that a call needs now; returns whether a user had to decide.
    async fn ask_for_more(
        &self,
        granted: &mut Granted,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<By, Failure> {
        let mut by = By::Rules;
        let asks = within(ASKS_DEADLINE, tool.name(), tool.asks(input, cx)).await?.map_err(failure)?;
        for ask in asks {
            let Some(rest) = granted.rest(&ask) else { continue };
            if ask.permission == Task::NAME
                && ask.patterns.iter().all(|agent| self.caller.named.contains(agent))
            {
                // The user named the agent, which permits the call. The caller's rules hold for the agent all the same.
            } else if self.gate(&rest, Some(granted.tool.clone())).await? == By::User {
                by = By::User;
            }
            granted.asks.push(ask);
        }
        Ok(by)
    }
}

impl Granted {
    /// The part of an ask that was not granted yet.
    fn rest(&self, ask: &Ask) -> Option<Ask> {
        let is_same = |known: &&Ask| known.permission == ask.permission && known.patterns == ask.patterns;
        let known: Vec<_> = self.asks.iter().filter(is_same).collect();
        if known.is_empty() {
            return Some(ask.clone());
        }
        let is_new = |implied: &&Implied| !known.iter().any(|ask| ask.implied.contains(implied));
        let implied: Vec<_> = ask.implied.iter().filter(is_new).cloned().collect();
        let is_more = !implied.is_empty();
        is_more.then(|| Ask { patterns: Vec::new(), implied, ..ask.clone() })
    }
}

/// Requests a permission for a session.
pub(super) async fn gate(inner: &Inner, ask: &Ask, asker: &Asker<'_>) -> Result<By, Failure> {
    let verdict = inner.gate.check(ask, asker).await;
    match verdict {
        Ok(Verdict::Granted(by)) => Ok(by),
        Ok(Verdict::Denied(rules)) => {
            let rules = serde_json::to_string(&rules).unwrap_or_default();
            let reason = ask.metadata.get(Ask::REASON).and_then(Value::as_str);
            let reason =
                reason.map(|reason| format!(" It may do anything, because {reason}.")).unwrap_or_default();
            Err(Failure::Message(format!(
                "A permission rule forbids this call.{reason} Rules that speak of it: {rules}"
            )))
        }
        Ok(Verdict::Rejected(None)) => Err(Failure::Message(REJECTED.to_owned())),
        Ok(Verdict::Rejected(Some(message))) => {
            let sentence = REJECTED.trim_end_matches('.');
            Err(Failure::Message(format!("{sentence} with the following feedback: {message}")))
        }
        Ok(Verdict::Cancelled) => Err(Failure::Aborted),
        Err(error) => Err(Failure::Message(format!("The call could not ask for permission: {error}"))),
    }
}

/// Applies the rules to a shell command as if the model had written it.
///
/// # Errors
///
/// Returns the reason if the command is not allowed.
pub(crate) async fn check_command(
    inner: &Inner,
    instance: &Instance,
    asker: &Asker<'_>,
    command: &str,
) -> Result<(), String> {
    let reason = |failure: Failure| match failure {
        Failure::Message(reason) => reason,
        Failure::Aborted => "the question was withdrawn".to_owned(),
    };
    let tool = inner.toolbox.find(Bash::NAME);
    let tool = tool.ok_or_else(|| "there is no tool that runs commands".to_owned())?;
    let cx = tool_cx(inner, instance, asker.cancel.clone(), Progress::none());
    let input = serde_json::json!({ "command": command, "description": "shell command of a template" });
    let asks = tool.asks(&input, &cx).await.map_err(|error| reason(failure(error)))?;
    for ask in &asks {
        gate(inner, ask, asker).await.map_err(reason)?;
    }
    Ok(())
}
