//! Delegates work to a subagent: the child session, its prompt, its end and its report.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_config::AgentSpec;
use codewright_proto::{
    Action, Map, Message, MessageError, MessageId, MessageWithParts, PartBody, PartInput, PromptInput,
    PromptModel, Rule, Session, SessionId, SessionInput, ToolState,
};
use codewright_tools::tags::neutralize;
use codewright_tools::{Progress, TaskInput, TaskOutcome, ToolError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::admit::{Admission, admit};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Sessions;
use crate::permission::gate::Asker;
use crate::permission::rules::PermissionRules;
use crate::run::refusal::REJECTED;
use crate::run::table::Turn;
use crate::session;

/// How long an aborted subagent may take to end.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// The facts about a caller that delegation depends on.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    pub(crate) rules: PermissionRules,
    /// The agent of the step.
    pub(crate) agent: String,
    /// The model of the step, for subagents without a configured model.
    pub(crate) model: Option<PromptModel>,
    /// Tools that the prompt disabled.
    pub(crate) switched_off: Vec<String>,
    /// Agents that the user named. Calling them needs no permission.
    pub(crate) named: Vec<String>,
    /// The cost of the answers that calls of the step requested from models, in US dollars.
    pub(crate) side_cost: Mutex<f64>,
}

impl Caller {
    /// Adds the cost of an answer that a call requested.
    pub(crate) fn charge(&self, cost: f64) {
        *self.side_cost.lock().unwrap_or_else(PoisonError::into_inner) += cost;
    }

    /// Returns the cost of the answers that calls have requested.
    pub(crate) fn side_cost(&self) -> f64 {
        *self.side_cost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The call that delegates.
pub(crate) struct Call<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) instance: &'a Arc<Instance>,
    pub(crate) session: &'a SessionId,
    pub(crate) caller: &'a Caller,
    pub(crate) progress: &'a Progress,
    pub(crate) cancel: &'a CancellationToken,
}

/// Delegates work and waits for its end, unless it runs in the background.
pub(crate) async fn delegate(call: Call<'_>, work: TaskInput) -> Result<TaskOutcome, ToolError> {
    let agent = call.instance.agent(&work.agent).ok().filter(|agent| !agent.hidden);
    let agent = agent.ok_or_else(|| {
        ToolError::Model(format!("Unknown agent type: {} is not a valid agent type", work.agent))
    })?;
    let model = agent.model.clone().or_else(|| call.caller.model.clone());
    let model = model.ok_or_else(|| ToolError::model("there is no model for the subagent"))?;
    let parent = call.inner.session(call.session).await.map_err(ToolError::model)?;
    check_depth(&call, &parent).await?;
    let asker = Asker {
        held: None,
        hook_id: None,
        session_id: call.session,
        instance: call.instance,
        rules: &call.caller.rules,
        tool: None,
        cancel: call.cancel,
    };
    let parts = Sessions(call.inner).delegated_parts(&asker, &work.prompt).await;
    let parts = parts.map_err(ToolError::model)?;
    let child = child(&call, &parent, agent, &work).await?;
    let mut metadata = Map::new();
    metadata.insert("parentSessionId".to_owned(), json!(parent.id));
    metadata.insert("sessionId".to_owned(), json!(child.id));
    let shown = json!({ "modelID": model.model_id, "providerID": model.provider_id });
    metadata.insert("model".to_owned(), shown);
    call.progress.report_titled(metadata.clone(), &work.description);
    let prompt = PromptInput {
        agent: Some(agent.name.clone()),
        model: Some(PromptModel { variant: agent_variant(agent), ..model }),
        // The caller's model, or one that the configuration names.
        chosen: Some(true),
        tools: switches(&call.caller.switched_off),
        parts,
        ..PromptInput::default()
    };
    let task_id = child.id.to_string();
    if work.background == Some(true) {
        begin_in_background(&call, child.id, prompt, work.description).await?;
        return Ok(TaskOutcome { task_id, result: None, metadata });
    }
    let _ended = EndsJobs(call.inner, child.id.clone());
    let result = foreground(&call, &child.id, prompt).await?;
    Ok(TaskOutcome { task_id, result: Some(result), metadata })
}

/// Ends a subagent's background jobs with its work, because no other session knows them.
struct EndsJobs<'a>(&'a Inner, SessionId);

impl Drop for EndsJobs<'_> {
    fn drop(&mut self) {
        self.0.jobs.end(self.1.as_str());
    }
}

/// Returns the variant of the agent's configured model.
fn agent_variant(agent: &AgentSpec) -> Option<String> {
    agent.model.as_ref().and_then(|model| model.variant.clone().or_else(|| agent.variant.clone()))
}

fn switches(off: &[String]) -> Option<BTreeMap<String, bool>> {
    (!off.is_empty()).then(|| off.iter().map(|tool| (tool.clone(), false)).collect())
}

/// Fails if the delegation is too deep.
async fn check_depth(call: &Call<'_>, parent: &Session) -> Result<(), ToolError> {
    let limit = call.instance.settled.subagent_depth;
    let mut depth = 1;
    let mut next = parent.parent_id.clone();
    while let Some(id) = next {
        depth += 1;
        if depth > limit {
            break;
        }
        next =
            call.inner.store.session(&id).await.map_err(ToolError::model)?.and_then(|above| above.parent_id);
    }
    if depth > limit {
        return Err(ToolError::Model(format!(
            "Subagents can be nested at most {limit} deep: do this work yourself, or report what remains."
        )));
    }
    Ok(())
}

/// Returns the session to continue if the caller started it, or else a new one.
async fn child(
    call: &Call<'_>,
    parent: &Session,
    agent: &AgentSpec,
    work: &TaskInput,
) -> Result<Session, ToolError> {
    if let Some(id) = work.task_id.as_deref().and_then(|id| SessionId::parse(id).ok()) {
        let known = call.inner.store.session(&id).await.map_err(ToolError::model)?;
        // A guessed id must not give access to the work of another caller.
        if let Some(known) = known.filter(|known| known.parent_id.as_ref() == Some(&parent.id)) {
            return Ok(known);
        }
    }
    let speaks = |of: &str| agent.permission.iter().any(|rule| rule.permission == of);
    let withheld = ["todowrite", "task"].into_iter().filter(|of| !speaks(of));
    let withheld: Vec<_> = withheld.map(|of| Rule::new(of, "*", Action::Deny)).collect();
    let input = SessionInput {
        parent_id: Some(parent.id.clone()),
        title: Some(format!("{} (@{} subagent)", work.description, agent.name)),
        agent: Some(agent.name.clone()),
        permission: (!withheld.is_empty()).then_some(withheld),
        ..SessionInput::default()
    };
    session::create(call.inner, call.instance, input).await.map_err(ToolError::model)
}

async fn foreground(call: &Call<'_>, child: &SessionId, prompt: PromptInput) -> Result<String, ToolError> {
    let noted = call.inner.subagents.begin(call.session, child, &call.caller.rules, false);
    let _noted = noted.ok_or_else(crowded)?;
    let (message, turn) =
        admit(call.inner, child, Admission::Prompt(Box::new(prompt))).await.map_err(ToolError::model)?;
    // The subagent stops when this call ends for any reason.
    let stopped = StopOnDrop { inner: call.inner, child, armed: true };
    if let Some(turn) = turn
        && call.cancel.run_until_cancelled(turn.ended()).await.is_none()
    {
        if let Some(turn) = stopped.stop() {
            wait(turn).await;
        }
        return Err(ToolError::Cancelled(None));
    }
    stopped.disarm();
    last_words(call.inner, child, &message).await
}

fn crowded() -> ToolError {
    ToolError::model("too many subagents are running: wait until some of them end")
}

async fn wait(turn: Turn) {
    // It was aborted; if it does not end, the caller does not wait for it.
    drop(tokio::time::timeout(STOP_WAIT, turn.ended()).await);
}

/// Stops a subagent unless its end was observed.
struct StopOnDrop<'a> {
    inner: &'a Inner,
    child: &'a SessionId,
    armed: bool,
}

impl StopOnDrop<'_> {
    fn stop(&self) -> Option<Turn> {
        self.inner.runs.cancel(self.child)
    }

    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            drop(self.stop());
        }
    }
}

/// Returns the subagent's last text after a prompt. Fails if there is none.
async fn last_words(inner: &Inner, child: &SessionId, prompt: &MessageId) -> Result<String, ToolError> {
    let transcript = inner.store.transcript(child).await.map_err(ToolError::model)?;
    let mut answers = transcript.iter().filter_map(|message| match &message.info {
        Message::Assistant(info) if info.id > *prompt => Some((info, message)),
        Message::Assistant(_) | Message::User(_) => None,
    });
    let Some((info, message)) = answers.next_back() else {
        return Err(ToolError::Model(format!("The subagent sent no answer. {}", go_on(child))));
    };
    match &info.error {
        Some(MessageError::MessageAbortedError { .. }) => {
            Err(ToolError::Model(format!("The subagent was stopped before it finished. {}", go_on(child))))
        }
        Some(error) => {
            Err(ToolError::Model(format!("The subagent failed: {}. {}", error.message(), go_on(child))))
        }
        None => Ok(words(message)),
    }
}

fn go_on(child: &SessionId) -> String {
    format!("Its work so far is kept: call task with the task_id `{child}` to continue.")
}

fn words(message: &MessageWithParts) -> String {
    let texts = message.parts.iter().rev().filter_map(|part| match &part.body {
        PartBody::Text(text) if !text.text.trim().is_empty() => Some(text.text.to_string()),
        _ => None,
    });
    let refused = message.parts.iter().any(|part| {
        matches!(&part.body, PartBody::Tool(call)
            if matches!(&call.state, ToolState::Error { error, .. } if error == REJECTED))
    });
    let mut texts = texts;
    match texts.next() {
        Some(text) if !refused => text,
        text => {
            let note =
                if refused { "(The user refused a call of the subagent; that ended its work.)" } else { "" };
            [text.as_deref().unwrap_or_default(), note].join("\n").trim().to_owned()
        }
    }
}

/// Starts a subagent in the background; its report is sent as a message.
async fn begin_in_background(
    call: &Call<'_>,
    child: SessionId,
    prompt: PromptInput,
    description: String,
) -> Result<(), ToolError> {
    let (inner, parent) = (call.inner.clone(), call.session.clone());
    // Registered before the prompt is admitted, so that the first step already has the caller's rules.
    let noted = inner.subagents.begin(&parent, &child, &call.caller.rules, true).ok_or_else(crowded)?;
    let (message, turn) =
        admit(&inner, &child, Admission::Prompt(Box::new(prompt))).await.map_err(ToolError::model)?;
    call.inner.tasks.spawn(async move {
        if let Some(turn) = turn {
            turn.ended().await;
        }
        inner.jobs.end(child.as_str());
        if noted.silenced.is_cancelled() || inner.cancel.is_cancelled() {
            return;
        }
        drop(noted);
        let (state, result) = match last_words(&inner, &child, &message).await {
            Ok(result) => ("completed", result),
            Err(error) => ("error", error.to_string()),
        };
        let result = neutralize(&result);
        let text = format!(
            "The background task `{description}` has ended:\n\n\
             <task id=\"{child}\" state=\"{state}\">\n<task_result>\n{result}\n</task_result>\n</task>"
        );
        let part = PartInput::Text { id: None, text, synthetic: Some(true), ignored: None, metadata: None };
        let prompt = PromptInput { parts: vec![part], chosen: Some(true), ..PromptInput::default() };
        // The session may have been deleted; then the report is not needed.
        drop(admit(&inner, &parent, Admission::Prompt(Box::new(prompt))).await);
    });
    Ok(())
}
