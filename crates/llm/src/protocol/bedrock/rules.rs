//! The rules of Amazon Bedrock's Converse.
//!
//! Sources: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html> (20 pictures of at most
//! 3.75 MB and 8000 pixels), `API_runtime_ToolUseBlock` (ids of 1 to 64 of `a-zA-Z0-9_-`), `API_runtime_ToolSpecification`
//! (names of 1 to 64 of `a-zA-Z0-9_-`), `API_runtime_ImageBlock` (png, jpeg, gif, webp), and the messages of refused
//! requests. Claude's rules for schemas hold here too.

use crate::Model;
use crate::protocol::rules::{CallId, Dialect, End, NameForm, PictureRules, Rules, ToolName, USUAL_PICTURES};

const MIB: usize = 1024 * 1024;

/// 3.75 MB are 5 MB in base64. Claude has fewer pixels if there are many pictures.
const RULES: Rules = Rules {
    tool_name: ToolName { most_bytes: 64, form: NameForm::Plain },
    call_id: CallId::Word(64),
    most_tools: 10_000,
    schema: &[Dialect::FlatTop, Dialect::Draft2020, Dialect::PropertyNames],
    pictures: PictureRules {
        most: 20,
        most_pixels: 2000,
        most_base64_bytes: 5_000_000,
        most_bytes_in_all: 20 * MIB,
        ..USUAL_PICTURES
    },
    end: End::Any,
};

/// Returns the rules for a model. Those of Mistral have ids of nine characters.
pub(crate) fn of(model: &Model) -> Rules {
    if super::request::is_mistral(model) { Rules { call_id: CallId::Nine, ..RULES } } else { RULES }
}
