//! Reads the text of a file for another agent, which gets it as it is.

use codewright_workspace::{MAX_TEXT_BYTES, Node};
use serde_json::Value;

use super::{Input, Read, missing};
use crate::known::Stamp;
use crate::{Ask, Effect, Facts, Output, Tool, ToolCx, ToolError};

/// A variant of the `read` tool that returns the text without line numbers and limits. It has the same permissions.
pub struct ReadText;

impl Tool for ReadText {
    const NAME: &'static str = Read::NAME;
    const FACTS: &'static Facts =
        &Facts { effect: Effect::None, finds_files: true, limits_output: true, ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        Read.description()
    }

    fn parameters(&self) -> Value {
        Read.parameters()
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Read.asks(input, cx).await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let inner = cx.clone();
        cx.reading(move || {
            let held = inner.judged(&input.file_path)?;
            let path = held.place.path.display();
            match held.status()?.map(|status| status.node) {
                None => return Err(missing(&held)),
                // Opening a device may have an effect.
                Some(Node::Directory | Node::Special) => {
                    return Err(ToolError::Model(format!("Not a regular file: {path}")));
                }
                Some(Node::File) => {}
            }
            // The stamp is taken before reading, so that a change during the read is noticed.
            let stamp = Stamp::of(&held);
            let text = String::from_utf8(held.read(MAX_TEXT_BYTES)?);
            let text = text.map_err(|_| ToolError::Model(format!("Cannot read binary file: {path}")))?;
            inner.known.saw(&held.place.real, stamp);
            let text = match (input.offset, input.limit) {
                (None, None) => text,
                _ => text.split_inclusive('\n').skip(input.offset() - 1).take(line_limit(&input)).collect(),
            };
            Ok(Output::new("", text))
        })
        .await
    }
}

/// The number of lines to return. Without a limit, all of them.
fn line_limit(input: &Input) -> usize {
    input.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
