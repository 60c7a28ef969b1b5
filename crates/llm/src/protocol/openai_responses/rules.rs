//! The rules of OpenAI Responses.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/responses/create> (call ids of at most 64 characters, names of
//! at most 64), <https://platform.openai.com/docs/guides/images-vision> (500 pictures, 50 MB; png, jpeg, webp and still
//! gif), and the messages of refused requests: `schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/
//! 'enum'/'not' at the top level`, `array schema missing items`, `Expected an array with maximum length 128`, `Duplicate
//! value for 'tool_call_id'`.

use crate::Model;
use crate::protocol::openai_chat::rules::by_maker;
use crate::protocol::rules::{CallId, Dialect, End, NameForm, Rules, ToolName, USUAL_PICTURES};

const RULES: Rules = Rules {
    tool_name: ToolName { most_bytes: 64, form: NameForm::Plain },
    call_id: CallId::Any(64),
    most_tools: 128,
    schema: &[Dialect::FlatTop, Dialect::ListItems],
    pictures: USUAL_PICTURES,
    end: End::Any,
};

/// Returns the rules for a model.
pub(crate) fn of(model: &Model) -> Rules {
    by_maker(RULES, model)
}
