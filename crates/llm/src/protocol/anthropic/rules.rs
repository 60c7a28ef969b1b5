//! The rules of Anthropic Messages.
//!
//! Sources: <https://docs.anthropic.com/en/api/messages> (roles, blocks, results directly after calls),
//! <https://docs.anthropic.com/en/docs/build-with-claude/vision> (100 pictures, 8000 pixels, 2000 pixels if there are
//! more than 20, 5 MB each), <https://docs.anthropic.com/en/api/overview> (32 MB in a request),
//! <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking> (signatures), and the messages of refused
//! requests: `input_schema does not support oneOf, allOf, or anyOf at the top level`, `Property keys should match
//! pattern '^[a-zA-Z0-9_.-]{1,64}$'`, `It must match JSON Schema draft 2020-12`, `tool_use ids must be unique`, `String
//! should match pattern '^[a-zA-Z0-9_-]+$'`, `This model does not support assistant message prefill`.

use crate::Model;
use crate::protocol::openai_chat::rules::is_moonshot;
use crate::protocol::rules::{CallId, Dialect, End, NameForm, PictureRules, Rules, ToolName, USUAL_PICTURES};

const MIB: usize = 1024 * 1024;

/// The bytes of pictures leave room for the text of a request of 32 MB.
const RULES: Rules = Rules {
    tool_name: ToolName { most_bytes: 128, form: NameForm::Plain },
    call_id: CallId::Word(256),
    most_tools: 10_000,
    schema: &[Dialect::FlatTop, Dialect::Draft2020, Dialect::PropertyNames],
    pictures: PictureRules {
        most: 100,
        most_pixels: 2000,
        most_base64_bytes: 5 * MIB,
        most_bytes_in_all: 24 * MIB,
        ..USUAL_PICTURES
    },
    end: End::User,
};

/// The families that can continue their own message. Newer ones refuse it.
const CONTINUING: &[&str] = &["claude-2", "claude-3", "claude-instant", "-4-0", "-4-1", "-4-5", "-4-2025"];

/// Kimi's servers speak this protocol too, with Moonshot's dialect of schemas.
const KIMI: &[Dialect] = &[Dialect::FlatTop, Dialect::Moonshot, Dialect::ListItems, Dialect::PropertyNames];

/// Returns the rules for a model.
pub(crate) fn of(model: &Model) -> Rules {
    let continues = CONTINUING.iter().any(|family| model.api_id.contains(family));
    let is_claude = model.api_id.contains("claude");
    let end = if continues || !is_claude { End::Any } else { End::User };
    let schema = if is_moonshot(model) { KIMI } else { RULES.schema };
    Rules { end, schema, ..RULES }
}
