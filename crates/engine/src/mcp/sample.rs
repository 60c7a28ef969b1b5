//! Answers of the model for MCP servers (sampling).
//!
//! The user consents to each answer. It is written by the model of the step whose call the server runs, without tools
//! and outside of the conversation.

use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{
    AssistantContent, FinishReason, Message, Model, ModelEvent, Request, Usage, UserContent, family,
};
use codewright_mcp::{Sampled, Sampling, Speaker, Stop};
use codewright_proto::PromptModel;
use codewright_tools::{Choice, Completed, Completion, CompletionMessage, Host, ToolError, UserQuestion};
use tokio::time::timeout;

use crate::inner::Inner;
use crate::instance::Instance;
use crate::request::max_output_tokens;

/// The time limit of an answer.
const DEADLINE: Duration = Duration::from_secs(180);
/// The most of an answer that is read.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// The characters of a request that the user sees.
const SHOWN_CHARS: usize = 4000;
/// The choices of the user.
const CHOICES: [(&str, &str); 2] = [
    ("Accept", "The model answers, and the server gets the answer"),
    ("Decline", "The server gets no answer"),
];

/// Asks the user, then the model.
pub(super) async fn sample(host: &dyn Host, server: &str, wanted: Sampling) -> Result<Sampled, String> {
    let declined = || "the user declined the request".to_owned();
    let answers = host.ask_user(vec![question(server, &wanted)]).await;
    let answers = answers.map_err(|_| declined())?.ok_or_else(declined)?;
    let is_accepted =
        answers.first().and_then(|answer| answer.first()).is_some_and(|text| text == CHOICES[0].0);
    if !is_accepted {
        return Err(declined());
    }
    let message = |(speaker, text): (Speaker, String)| match speaker {
        Speaker::User => CompletionMessage::User(text),
        Speaker::Model => CompletionMessage::Model(text),
    };
    let completion = Completion {
        system: wanted.system.unwrap_or_default(),
        messages: wanted.messages.into_iter().map(message).collect(),
        max_tokens: wanted.max_tokens,
        temperature: wanted.temperature,
    };
    let answer = host.complete(completion).await.map_err(|error| error.to_string())?;
    let stop = if answer.is_cut { Stop::Length } else { Stop::End };
    Ok(Sampled { text: answer.text, model: answer.model, stop })
}

fn question(server: &str, wanted: &Sampling) -> UserQuestion {
    let system = wanted.system.as_deref().map(|system| format!("System: {system}\n")).unwrap_or_default();
    let lines = wanted.messages.iter().map(|(speaker, text)| match speaker {
        Speaker::User => format!("Server: {text}"),
        Speaker::Model => format!("Model: {text}"),
    });
    let text = format!("{system}{}", lines.collect::<Vec<_>>().join("\n"));
    let option = |(label, description): (&str, &str)| Choice {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    UserQuestion {
        question: format!(
            "The MCP server `{}` wants an answer of the model, of at most {} tokens, to:\n{}",
            super::shown::line(server),
            wanted.max_tokens,
            super::shown::text(&text, SHOWN_CHARS)
        ),
        header: super::shown::line(server).chars().take(30).collect(),
        options: CHOICES.map(option).into(),
        multiple: None,
        custom: Some(false),
    }
}

/// An answer and what it used.
pub(crate) struct Answer {
    pub(crate) completed: Completed,
    pub(crate) model: Arc<Model>,
    pub(crate) usage: Usage,
}

/// Has a model write an answer, without tools.
pub(crate) async fn complete(
    inner: &Inner,
    instance: &Instance,
    model: Option<&PromptModel>,
    wanted: Completion,
) -> Result<Answer, ToolError> {
    let model = match model {
        Some(model) => instance.models.find(&model.provider_id, &model.model_id),
        None => {
            instance.models.default_model().and_then(|(provider, id)| instance.models.find(&provider, &id))
        }
    };
    let model = model.map_err(ToolError::model)?;
    let message = |message: CompletionMessage| match message {
        CompletionMessage::User(text) => Message::User(vec![UserContent::Text(text)]),
        CompletionMessage::Model(text) => Message::Assistant(vec![AssistantContent::Text(text)]),
    };
    let request = Request {
        system: wanted.system,
        messages: wanted.messages.into_iter().map(message).collect(),
        max_output_tokens: wanted.max_tokens.min(max_output_tokens(&model)),
        temperature: wanted.temperature.filter(|_| model.capabilities.temperature),
        options: family::options(&model),
        ..Request::default()
    };
    let answering = async {
        let mut stream = inner.llm.stream(&model, &request).await.map_err(ToolError::model)?;
        let (mut text, mut is_cut, mut used) = (String::new(), false, Usage::default());
        while let Some(event) = stream.next().await {
            match event.map_err(ToolError::model)? {
                ModelEvent::TextDelta(delta) => text.push_str(&delta),
                ModelEvent::TextWasReasoning => text.clear(),
                ModelEvent::Finish { reason, usage } => {
                    is_cut = reason == FinishReason::Length;
                    used = usage;
                    break;
                }
                _ => {}
            }
            if text.len() > MAX_ANSWER_BYTES {
                is_cut = true;
                break;
            }
        }
        Ok::<_, ToolError>((text, is_cut, used))
    };
    let late = || ToolError::Model(format!("the model did not answer within {} s", DEADLINE.as_secs()));
    let (text, is_cut, usage) = timeout(DEADLINE, answering).await.map_err(|_| late())??;
    let completed = Completed { text, model: model.id.clone(), is_cut };
    Ok(Answer { completed, model, usage })
}
