//! Prompts an interactive user for permissions and answers.

use std::io::Write as _;

use codewright_proto::{PermissionReply, PermissionRequest, Question, QuestionRequest};
use serde_json::Value;

use super::Lines;
use crate::clean::{clean, clean_line};
use crate::style::Style;

/// How many patterns are listed.
const MAX_PATTERNS: usize = 20;

/// Prompts for permission. The end of the input rejects.
pub(super) async fn permission(
    lines: &mut Lines,
    request: &PermissionRequest,
) -> anyhow::Result<PermissionReply> {
    let meta = |key: &str| request.metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("\n! permission for {}\n", clean_line(&request.permission));
    for detail in
        [meta("command"), meta("diff"), meta("sandbox")].into_iter().filter(|detail| !detail.is_empty())
    {
        text.push_str(&format!("{}\n", clean(detail).trim_end()));
    }
    for pattern in request.patterns.iter().take(MAX_PATTERNS) {
        text.push_str(&format!("  {}\n", clean_line(pattern)));
    }
    text.push_str(&explanation(request));
    loop {
        print_prompt(&format!("{text}Allow once [y], always [a], or reject [n]? "));
        let Some(answer) = lines.next_line().await? else { return Ok(PermissionReply::Reject) };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" | "once" => return Ok(PermissionReply::Once),
            "a" | "always" => return Ok(PermissionReply::Always),
            "n" | "no" | "reject" => return Ok(PermissionReply::Reject),
            _ => text.clear(),
        }
    }
}

/// The explanation of a permission request in one text: the reason, the calls that "always" allows, and wider patterns.
fn explanation(request: &PermissionRequest) -> String {
    let Some(asked) = request.metadata.get("asked") else { return String::new() };
    let part = |key: &str| asked[key].as_str().map(clean_line).unwrap_or_default();
    let mut text = format!("Asked because {}.\nAlways allows: {}.\n", part("because"), part("always"));
    let wider: Vec<_> =
        asked["wider"].as_array().into_iter().flatten().filter_map(Value::as_str).map(clean_line).collect();
    if !wider.is_empty() {
        text.push_str(&format!("A rule of your configuration can allow more: {}.\n", wider.join(", ")));
    }
    text
}

/// Prompts for answers. Returns `None` if the user dismisses them.
pub(super) async fn questions(
    lines: &mut Lines,
    request: &QuestionRequest,
) -> anyhow::Result<Option<Vec<Vec<String>>>> {
    let mut answers = Vec::new();
    for question in &request.questions {
        print_prompt(&question_text(question));
        let Some(answer) = lines.next_line().await? else { return Ok(None) };
        if answer.trim().is_empty() {
            return Ok(None);
        }
        answers.push(parse_answer(question, &answer));
    }
    Ok(Some(answers))
}

fn question_text(question: &Question) -> String {
    let mut text = format!("\n? {}\n", clean(&question.question).trim_end());
    for (at, option) in question.options.iter().enumerate() {
        let (label, about) = (clean_line(&option.label), clean_line(&option.description));
        text.push_str(&format!("  {}. {label} {about}\n", at + 1));
    }
    let many = if question.multiple.unwrap_or(false) { "Numbers, separated by commas" } else { "A number" };
    format!("{text}{many}, or your own answer (empty to dismiss): ")
}

/// Parses an answer: numbers select options, anything else is a custom answer.
fn parse_answer(question: &Question, answer: &str) -> Vec<String> {
    let label = |word: &str| {
        let at = word.trim().parse::<usize>().ok()?.checked_sub(1)?;
        question.options.get(at).map(|option| option.label.clone())
    };
    let words: Vec<&str> =
        if question.multiple.unwrap_or(false) { answer.split(',').collect() } else { vec![answer] };
    let labels: Option<Vec<String>> = words.into_iter().map(label).collect();
    labels.unwrap_or_else(|| vec![answer.trim().to_owned()])
}

fn print_prompt(text: &str) {
    let mut stderr = std::io::stderr();
    // If standard error is closed, there is no other way to report this.
    drop(write!(stderr, "{}", Style::stderr().yellow(text)));
    drop(stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_select_options_and_other_text_is_a_custom_answer() {
        let option = |label: &str| serde_json::json!({"label": label, "description": ""});
        let json = serde_json::json!({
            "question": "q", "header": "h", "multiple": true, "options": [option("A"), option("B")],
        });
        let mut question: Question = serde_json::from_value(json).unwrap();
        assert_eq!(parse_answer(&question, "2, 1"), ["B", "A"]);
        assert_eq!(parse_answer(&question, "2, 9"), ["2, 9"]);
        question.multiple = None;
        assert_eq!(parse_answer(&question, "1"), ["A"]);
        assert_eq!(parse_answer(&question, " something else "), ["something else"]);
    }
}
