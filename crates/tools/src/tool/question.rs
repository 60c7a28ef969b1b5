//! Sends questions to the user.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::{Answers, Question as One};
use crate::{Ask, Effect, Facts, Output, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("question.txt");
/// The limit of questions in one call.
const MAX_QUESTIONS: usize = 20;
/// The limit of choices of one question.
const MAX_OPTIONS: usize = 50;
/// The limit for the size of all questions in one call.
const MAX_BYTES: usize = 64 * 1024;
/// The longest wait for the user's answer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// The error of a call whose questions the user dismissed. The turn ends with it.
pub(crate) const DISMISSED: &str = "The user dismissed this question";

/// The `question` tool.
pub struct Question;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    questions: Vec<One>,
}

impl Tool for Question {
    const NAME: &'static str = "question";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::None,
        position: Some(1),
        is_available: |setup| setup.can_ask,
        ..Facts::PLAIN
    };
    const DEADLINE: Duration = DEADLINE;
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        let option = json!({
            "type": "object",
            "properties": {
                "label": {"type": "string", "description": "The choice in one to five words"},
                "description": {"type": "string", "description": "What choosing it means"},
            },
            "required": ["label", "description"],
        });
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "question": {"type": "string", "description": "The question in full"},
                            "header": {"type": "string", "description": "A few words for it, 30 characters at most"},
                            "options": {"type": "array", "items": option, "description": "The choices"},
                            "multiple": {"type": "boolean", "description": "Whether several may be chosen"},
                        },
                        "required": ["question", "header", "options"],
                    },
                    "description": "The questions",
                },
            },
            "required": ["questions"],
        })
    }

    async fn asks(&self, _input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new(Self::NAME, vec!["*".to_owned()])])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        check(&input.questions)?;
        let answers = cx.host.ask_user(input.questions.clone()).await?;
        let Some(answers) = answers else { return Err(ToolError::model(DISMISSED)) };
        let count = input.questions.len();
        let title = format!("Asked {count} question{}", if count == 1 { "" } else { "s" });
        let output = answers_text(&input.questions, &answers);
        Ok(Output { title, output, ..Output::default() }
            .with("answers", json!(answers))
            .with("truncated", false))
    }
}

fn check(questions: &[One]) -> Result<(), ToolError> {
    let count = questions.len();
    if count == 0 {
        return Err(ToolError::model("`questions` is empty"));
    }
    if count > MAX_QUESTIONS {
        return Err(ToolError::Model(format!(
            "{count} questions are too many for one call: ask {MAX_QUESTIONS} at most"
        )));
    }
    if let Some(one) = questions.iter().find(|one| one.options.len() > MAX_OPTIONS) {
        let (header, count) = (&one.header, one.options.len());
        return Err(ToolError::Model(format!("`{header}` has {count} options: give {MAX_OPTIONS} at most")));
    }
    if json!(questions).to_string().len() > MAX_BYTES {
        return Err(ToolError::Model(format!(
            "the questions are too long: {} KiB at most",
            MAX_BYTES / 1024
        )));
    }
    Ok(())
}

/// The answers as text for the model.
fn answers_text(questions: &[One], answers: &Answers) -> String {
    let pairs = questions.iter().enumerate().map(|(at, one)| {
        let answer = answers.get(at).filter(|answer| !answer.is_empty());
        let answer = answer.map_or_else(|| "Unanswered".to_owned(), |answer| answer.join(", "));
        format!("\"{}\"=\"{answer}\"", one.question)
    });
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    format!(
        "User has answered your questions: {pairs}. You can now continue with the user's answers in mind."
    )
}
