//! Replaces several texts in one file, all or none.

use serde::Deserialize;
use serde_json::{Value, json};

use super::edit::{Piece, asks_to_change, change, edits, finish};
use crate::{Ask, Effect, Facts, Listing, Output, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("multiedit.txt");
/// The limit of edits in one call. Each searches the whole file.
const MAX_EDITS: usize = 100;

/// The `multiedit` tool.
pub struct MultiEdit;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    file_path: String,
    edits: Vec<Piece>,
}

impl Tool for MultiEdit {
    const NAME: &'static str = "multiedit";
    const FACTS: &'static Facts = &Facts {
        permission: Some("edit"),
        effect: Effect::Reported,
        edits,
        listing: Listing::Accepted,
        form: Some(r#"{"filePath": "README.md", "edits": [{"oldString": "teh", "newString": "the"}]}"#),
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "filePath": {"type": "string", "description": "The file, absolute or relative to the project"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldString": {"type": "string", "description": "The text as it is then"},
                            "newString": {"type": "string", "description": "The new text"},
                            "replaceAll": {"type": "boolean", "description": "Change every occurrence"},
                        },
                        "required": ["oldString", "newString"],
                    },
                    "description": "The replacements, in order",
                },
            },
            "required": ["filePath", "edits"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, input) = (cx.clone(), input.clone());
        cx.reading(move || {
            let held = inner.judge_existing(&input.file_path)?;
            asks_to_change(&inner, &held, change(&held, pieces(&input)?))
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let held = cx.judged(&input.file_path)?;
        finish(held, cx, move |held| change(held, pieces(&input)?)).await
    }
}

fn pieces(input: &Input) -> Result<&[Piece], ToolError> {
    match input.edits.len() {
        0 => Err(ToolError::Model("edits is empty".to_owned())),
        count if count > MAX_EDITS => {
            Err(ToolError::Model(format!("{count} edits are too many; at most {MAX_EDITS} are made at once")))
        }
        _ => Ok(&input.edits),
    }
}
