//! Asking whoever writes the lines.

use std::io::Write as _;

use codewright_proto::{PermissionReply, PermissionRequest, Question, QuestionRequest};
use serde_json::Value;

use super::Lines;
use crate::clean::{clean, clean_line};
use crate::style::Style;

/// How many patterns are named.
const MAX_PATTERNS: usize = 20;

/// Asks for leave; the end of the input refuses.
pub(super) async fn permission(
    lines: &mut Lines,
    request: &PermissionRequest,
) -> anyhow::Result<PermissionReply> {
    let meta = |key: &str| request.metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut told = format!("\n! permission for {}\n", clean_line(&request.permission));
    for text in [meta("command"), meta("diff")].into_iter().filter(|text| !text.is_empty()) {
        told.push_str(&format!("{}\n", clean(text).trim_end()));
    }
    for pattern in request.patterns.iter().take(MAX_PATTERNS) {
        told.push_str(&format!("  {}\n", clean_line(pattern)));
    }
    let always = request.always.iter().map(|pattern| clean_line(pattern)).collect::<Vec<_>>().join(", ");
    if !always.is_empty() {
        told.push_str(&format!("  always would allow: {always}\n"));
    }
    loop {
        say(&format!("{told}allow once [y], always [a], or not [n]? "));
        let Some(answer) = lines.next_line().await? else { return Ok(PermissionReply::Reject) };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" | "once" => return Ok(PermissionReply::Once),
            "a" | "always" => return Ok(PermissionReply::Always),
            "n" | "no" | "reject" => return Ok(PermissionReply::Reject),
            _ => told.clear(),
        }
    }
}

/// Asks questions; none if the user would not answer.
pub(super) async fn questions(
    lines: &mut Lines,
    request: &QuestionRequest,
) -> anyhow::Result<Option<Vec<Vec<String>>>> {
    let mut answers = Vec::new();
    for question in &request.questions {
        say(&written(question));
        let Some(answer) = lines.next_line().await? else { return Ok(None) };
        if answer.trim().is_empty() {
            return Ok(None);
        }
        answers.push(read(question, &answer));
    }
    Ok(Some(answers))
}

fn written(question: &Question) -> String {
    let mut told = format!("\n? {}\n", clean(&question.question).trim_end());
    for (at, option) in question.options.iter().enumerate() {
        let (label, about) = (clean_line(&option.label), clean_line(&option.description));
        told.push_str(&format!("  {}. {label} {about}\n", at + 1));
    }
    let many = if question.multiple.unwrap_or(false) { "numbers, apart by commas" } else { "a number" };
    format!("{told}{many}, or your own answer (nothing dismisses the question): ")
}

/// Numbers stand for what may be chosen; anything else is an own answer.
fn read(question: &Question, answer: &str) -> Vec<String> {
    let label = |word: &str| {
        let at = word.trim().parse::<usize>().ok()?.checked_sub(1)?;
        question.options.get(at).map(|option| option.label.clone())
    };
    let words: Vec<&str> =
        if question.multiple.unwrap_or(false) { answer.split(',').collect() } else { vec![answer] };
    let labels: Option<Vec<String>> = words.into_iter().map(label).collect();
    labels.unwrap_or_else(|| vec![answer.trim().to_owned()])
}

fn say(text: &str) {
    let mut stderr = std::io::stderr();
    // Nobody is left to be told when this fails.
    drop(write!(stderr, "{}", Style::stderr().yellow(text)));
    drop(stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_choices_and_words_for_themselves() {
        let option = |label: &str| serde_json::json!({"label": label, "description": ""});
        let json = serde_json::json!({
            "question": "q", "header": "h", "multiple": true, "options": [option("A"), option("B")],
        });
        let mut question: Question = serde_json::from_value(json).unwrap();
        assert_eq!(read(&question, "2, 1"), ["B", "A"]);
        assert_eq!(read(&question, "2, 9"), ["2, 9"]);
        question.multiple = None;
        assert_eq!(read(&question, "1"), ["A"]);
        assert_eq!(read(&question, " something else "), ["something else"]);
    }
}
