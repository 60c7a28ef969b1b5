//! Permission requests and questions as requests to the editor.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use codewright_proto::{Map, PermissionReply, PermissionRequest, Question, QuestionAnswers, QuestionRequest};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::session::Session;
use crate::update;

/// The most options of a question that an editor shows.
const MAX_OPTIONS: usize = 50;
/// The id of the option that dismisses a question.
const DISMISS: &str = "dismiss";

/// Sends a permission request to the editor and its answer to the server.
pub(crate) async fn request(agent: Arc<Agent>, session: Arc<Session>, request: PermissionRequest) {
    let call = call(&session, &request);
    let option = |id: &'static str, name: &'static str, kind| PermissionOption::new(id, name, kind);
    let mut options = vec![option("once", "Allow once", PermissionOptionKind::AllowOnce)];
    if !request.always.is_empty() {
        options.push(option("always", "Always allow", PermissionOptionKind::AllowAlways));
    }
    options.push(option("reject", "Reject", PermissionOptionKind::RejectOnce));
    let chosen = choose(&agent, &session, call, options).await;
    let reply = match chosen.as_deref() {
        Some("once") => PermissionReply::Once,
        Some("always") if !request.always.is_empty() => PermissionReply::Always,
        // No answer, or one that was not offered, is none.
        _ => PermissionReply::Reject,
    };
    // It fails if another client has answered, or if the turn has ended.
    drop(session.client.reply_permission(&request.id, &reply.into()).await);
}

/// Sends a request to the editor. Returns the chosen option, or `None` if the editor chose none.
async fn choose(
    agent: &Agent,
    session: &Session,
    call: ToolCallUpdate,
    options: Vec<PermissionOption>,
) -> Option<String> {
    let request = RequestPermissionRequest::new(session.id.as_str().to_owned(), call, options);
    // The user decides when to answer. The request ends with the connection.
    match agent.connection()?.send_request(request).block_task().await.ok()?.outcome {
        RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.to_string()),
        _ => None,
    }
}

/// The call that waits, as the editor shows it in the request.
fn call(session: &Session, request: &PermissionRequest) -> ToolCallUpdate {
    let known = request.tool.as_ref().and_then(|tool| session.live().known_call(&tool.call_id));
    let metadata = Value::Object(request.metadata.clone());
    let is_edit = request.permission == "edit";
    let fields = ToolCallUpdateFields::new()
        .title(title(request))
        .kind(if is_edit { ToolKind::Edit } else { update::kind(&request.permission) })
        .status(ToolCallStatus::Pending)
        .locations(locations(&metadata, &session.directory))
        .content(known.as_ref().filter(|_| is_edit).map(|known| diffs(&known.input, &session.directory)))
        .raw_input(metadata);
    let id = match (&known, &request.tool) {
        (Some(known), _) => known.id.clone(),
        (None, Some(tool)) => tool.call_id.clone(),
        (None, None) => request.id.as_str().to_owned(),
    };
    ToolCallUpdate::new(id, fields)
}

/// The changes of a call that waits. The tool is known by its arguments.
fn diffs(input: &Value, directory: &Path) -> Vec<ToolCallContent> {
    let tool = if input.get("content").is_some() {
        "write"
    } else if input.get("edits").is_some() {
        "multiedit"
    } else {
        "edit"
    };
    let metadata: Map = [("exists".to_owned(), json!(false))].into_iter().collect();
    update::changes(tool, input, &metadata, directory).into_iter().map(ToolCallContent::Diff).collect()
}

/// What the request is about: a command, a file, an address.
fn title(request: &PermissionRequest) -> String {
    let named = ["command", "parentDir", "filepath", "url"]
        .iter()
        .find_map(|key| request.metadata.get(*key)?.as_str().map(str::to_owned));
    named.or_else(|| request.patterns.first().cloned()).unwrap_or_else(|| request.permission.clone())
}

fn locations(metadata: &Value, directory: &Path) -> Vec<ToolCallLocation> {
    let mut locations = update::locations(metadata, directory);
    let parent = metadata.get("parentDir").and_then(Value::as_str);
    locations.extend(parent.map(|parent| ToolCallLocation::new(directory.join(parent))));
    locations
}

/// Sends questions to the editor and the answers to the server. The protocol has no questions, so each is a request with the
/// options as choices. A question without options is dismissed.
pub(crate) async fn question(agent: Arc<Agent>, session: Arc<Session>, request: QuestionRequest) {
    let mut answers = Vec::new();
    for (at, question) in request.questions.iter().enumerate() {
        match answer(&agent, &session, format!("{}_{at}", request.id), question).await {
            Some(answer) => answers.push(vec![answer]),
            None => {
                drop(session.client.reject_question(&request.id).await);
                return;
            }
        }
    }
    drop(session.client.reply_question(&request.id, &QuestionAnswers { answers }).await);
}

async fn answer(agent: &Agent, session: &Session, id: String, question: &Question) -> Option<String> {
    if question.options.is_empty() {
        return None;
    }
    let offered = question.options.iter().take(MAX_OPTIONS);
    let explained: Vec<_> =
        offered.clone().map(|option| format!("- {}: {}", option.label, option.description)).collect();
    let text = format!("{}\n\n{}", question.question, explained.join("\n"));
    let fields = ToolCallUpdateFields::new()
        .title(question.question.clone())
        .kind(ToolKind::Other)
        .status(ToolCallStatus::Pending)
        .content(vec![update::shown(&text)]);
    let mut options: Vec<_> = offered
        .enumerate()
        .map(|(at, option)| {
            PermissionOption::new(at.to_string(), option.label.clone(), PermissionOptionKind::AllowOnce)
        })
        .collect();
    options.push(PermissionOption::new(DISMISS, "Dismiss", PermissionOptionKind::RejectOnce));
    let chosen = choose(agent, session, ToolCallUpdate::new(id, fields), options).await?;
    let option = question.options.get(chosen.parse::<usize>().ok()?)?;
    Some(option.label.clone())
}
