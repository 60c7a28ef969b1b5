//! The title of a new session, written during its first turn.
//!
//! No code waits for a title. If the one attempt fails or exceeds its deadline, the session keeps its first
//! title.

use std::sync::Arc;
use std::time::Duration;

use codewright_config::AgentSpec;
use codewright_llm::{Message, Model, ModelEvent, Protocol, Request, UserContent, family};
use codewright_proto::{MessageWithParts, Part, PartBody, Session};
use codewright_telemetry::carry;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::extension::model_request::About;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::models::options::merge;
use crate::run::prompt::last_prompt;
use crate::session::DEFAULT_TITLE;
use crate::{prompts, request, telemetry};

/// The agent that writes titles.
const AGENT: &str = "title";
const DEADLINE: Duration = Duration::from_secs(60);
/// Lists of sessions show one line.
const MAX_TITLE_CHARS: usize = 50;
/// The end of a title that was cut.
const CUT: &str = "...";
/// A title is cut between words if at most this share of it is lost.
const MAX_LOST: usize = MAX_TITLE_CHARS / 2;
/// The most of an answer that is read: a title is one line.
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// The most of the first prompt that is sent.
const MAX_PROMPT_BYTES: usize = 16 * 1024;

/// Returns whether the last message is the user's first prompt. Shell commands of the user do not count.
pub(crate) fn is_wanted(transcript: &[MessageWithParts]) -> bool {
    let mut prompts = transcript.iter().filter(|message| is_prompt(message));
    let first = prompts.next();
    first.is_some() && prompts.next().is_none() && transcript.last().is_some_and(is_prompt)
}

fn is_prompt(message: &MessageWithParts) -> bool {
    let is_written =
        |part: &Part| !matches!(&part.body, PartBody::Text(text) if text.synthetic == Some(true));
    matches!(message.info, codewright_proto::Message::User(_)) && message.parts.iter().any(is_written)
}

/// Starts to write a title if the session has none.
pub(crate) fn start(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    session: &Session,
    transcript: &[MessageWithParts],
) {
    if !session.title.starts_with(DEFAULT_TITLE) || session.parent_id.is_some() {
        return;
    }
    let Some(text) = first_text(transcript) else { return };
    // Without this agent there are no titles.
    let Ok(agent) = instance.agent(AGENT) else { return };
    let own =
        agent.model.as_ref().and_then(|model| instance.models.find(&model.provider_id, &model.model_id).ok());
    // Plugins choose a model only if the user has not.
    let is_chosen = own.is_some() || instance.models.configured_small().is_some();
    let small =
        || session.model.as_ref().and_then(|model| instance.models.small(&model.provider_id, &model.id));
    let Some(model) = own.or_else(small) else { return };
    let Some((prompt, _)) = last_prompt(transcript) else { return };
    let (inner, id, prompt) = (inner.clone(), session.id.clone(), prompt.clone());
    let small_of = session.model.as_ref().map(|model| model.provider_id.clone());
    let mut request = title_request(session, agent, &model, text);
    let directory = instance.clone();
    let work = async move {
        let extensions = inner.extensions.find(&directory.directory);
        let models = &directory.models;
        let mut model = model;
        if let Some(provider) = small_of.filter(|_| !is_chosen)
            && let Some((provider, id)) = extensions.small_model(models, &provider).await
            && let Ok(chosen) = models.find(&provider, &id)
        {
            model = chosen;
        }
        let about = About { session: &id, agent: AGENT, models, model: &model, prompt: &prompt };
        extensions.model_request(about, &mut request).await;
        let cancel = inner.cancel.clone();
        let asked = cancel.run_until_cancelled(tokio::time::timeout(DEADLINE, ask(&inner, &model, &request)));
        let Some(Ok(Some(title))) = asked.await else { return };
        // The session may have been deleted or renamed meanwhile.
        let named = inner.update_session(&id, |session| {
            if session.title.starts_with(DEFAULT_TITLE) {
                session.title.clone_from(&title);
            }
        });
        drop(named.await);
    };
    instance.tasks.spawn(carry(work));
}

pub(crate) fn first_text(transcript: &[MessageWithParts]) -> Option<String> {
    let parts = transcript.last()?.parts.iter();
    let texts = parts.filter_map(|part| match &part.body {
        PartBody::Text(text) if text.synthetic != Some(true) && text.ignored != Some(true) => {
            Some(&*text.text)
        }
        PartBody::Subtask { prompt, .. } => Some(prompt.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let mut end = text.len().min(MAX_PROMPT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (!text.trim().is_empty()).then(|| text[..end].to_owned())
}

fn title_request(session: &Session, agent: &AgentSpec, model: &Model, text: String) -> Request {
    // The Anthropic protocol rejects a temperature together with thinking, so titles use no thinking.
    let warm = match model.protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::Gemini | Protocol::Cohere => {
            model.capabilities.temperature
        }
        Protocol::Anthropic | Protocol::Bedrock => false,
    };
    let older = model.protocol == Protocol::Gemini && model.api_id.contains("gemini-2");
    let mut options = family::small_options(model);
    merge(&mut options, &agent.options);
    let content = |text| Message::User(vec![UserContent::Text(text)]);
    Request {
        system: agent.prompt.as_deref().unwrap_or(prompts::TITLE).trim_end().to_owned(),
        messages: vec![content(prompts::TITLE_REQUEST.to_owned()), content(text)],
        max_output_tokens: request::max_output_tokens(model),
        temperature: agent.temperature.filter(|_| warm),
        top_p: agent.top_p.or(older.then_some(0.95)),
        headers: request::session_headers(session),
        options,
        ..Request::default()
    }
}

async fn ask(inner: &Inner, model: &Model, request: &Request) -> Option<String> {
    let _span = telemetry::request(&inner.tracer, model);
    let mut stream = inner.llm.stream(model, request).await.ok()?;
    let mut answer = String::new();
    while let Some(event) = stream.next().await {
        match event.ok()? {
            ModelEvent::TextDelta(text) => answer.push_str(&text),
            ModelEvent::TextWasReasoning => answer.clear(),
            ModelEvent::Finish { .. } => break,
            _ => {}
        }
        if answer.len() > MAX_ANSWER_BYTES {
            break;
        }
    }
    clean(&answer)
}

/// Returns the first line with text, without reasoning, quotes and control characters.
pub(crate) fn clean(answer: &str) -> Option<String> {
    let answer = answer.rsplit_once("</think>").map_or(answer, |(_, rest)| rest);
    let line = answer.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let line = line.trim_matches(|c| matches!(c, '"' | '\'' | '`' | '*' | '#' | ' '));
    if line.is_empty() {
        return None;
    }
    Some(shortened(line))
}

/// Cuts a title that is too long, after a word if one ends near the limit, and never inside a visible character.
fn shortened(line: &str) -> String {
    if line.chars().count() <= MAX_TITLE_CHARS {
        return line.to_owned();
    }
    let room = MAX_TITLE_CHARS - CUT.len();
    let (mut end, mut chars) = (0, 0);
    for grapheme in line.graphemes(true) {
        chars += grapheme.chars().count();
        if chars > room {
            break;
        }
        end += grapheme.len();
    }
    let kept = &line[..end];
    let is_between = line[end..].starts_with(char::is_whitespace);
    let word_end = kept.rfind(char::is_whitespace).filter(|at| kept[*at..].chars().count() <= MAX_LOST);
    let kept = word_end.filter(|_| !is_between).map_or(kept, |at| &kept[..at]);
    let is_pause =
        |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '-' | '.' | '\u{2013}' | '\u{2014}');
    format!("{}{CUT}", kept.trim_end_matches(is_pause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_clean_line() {
        for (answer, expected) in [
            ("Fix login", Some("Fix login")),
            ("\n\n  \"Fix login\"\nmore", Some("Fix login")),
            ("<think>hm\nhm</think>\n\nFix login", Some("Fix login")),
            ("# **Fix login**", Some("Fix login")),
            ("Fix\u{1b}[31m login", Some("Fix[31m login")),
            ("", None),
            ("\"\"", None),
        ] {
            assert_eq!(clean(answer).as_deref(), expected, "{answer:?}");
        }
        assert_eq!(clean(&"\u{e4}".repeat(300)).unwrap(), format!("{}...", "\u{e4}".repeat(47)));
        let longest = "\u{e4}".repeat(MAX_TITLE_CHARS);
        assert_eq!(clean(&longest), Some(longest));
    }

    #[test]
    fn a_long_title_is_cut_between_words_and_visible_characters() {
        let family = "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let accent = "e\u{301}";
        for (answer, expected) in [
            (
                "Investigate why the login page fails, after the upgrade of the server".to_owned(),
                "Investigate why the login page fails, after the...".to_owned(),
            ),
            (
                "Investigate why the login page fails today, and then fix the server".to_owned(),
                "Investigate why the login page fails today, and...".to_owned(),
            ),
            (
                "Investigate why our login page always fails, afterwards".to_owned(),
                "Investigate why our login page always fails...".to_owned(),
            ),
            (family.repeat(20), format!("{}...", family.repeat(9))),
            (accent.repeat(60), format!("{}...", accent.repeat(23))),
            (format!("Fix {}", "x".repeat(80)), format!("Fix {}...", "x".repeat(43))),
        ] {
            let title = clean(&answer).unwrap();
            assert_eq!(title, expected);
            assert!(title.chars().count() <= MAX_TITLE_CHARS, "{title}");
        }
    }
}
