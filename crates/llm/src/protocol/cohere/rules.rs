//! The rules of Cohere's chat.
//!
//! Sources: <https://docs.cohere.com/reference/chat> (roles, results after calls), <https://docs.cohere.com/docs/image-inputs>
//! (20 pictures and 20 MB in a request; png, jpeg, webp, gif), <https://docs.cohere.com/v1/reference/chat> (names of
//! letters, digits and `_` that begin with no digit), <https://docs.cohere.com/docs/structured-outputs> (no variants).

use crate::protocol::rules::{CallId, Dialect, End, NameForm, PictureRules, Rules, ToolName, USUAL_PICTURES};

const MIB: usize = 1024 * 1024;

/// The rules for all models.
pub(crate) const RULES: Rules = Rules {
    tool_name: ToolName { most_bytes: 64, form: NameForm::Word },
    call_id: CallId::Any(256),
    most_tools: 10_000,
    schema: &[Dialect::FlatTop, Dialect::ListItems],
    pictures: PictureRules { most: 20, most_bytes_in_all: 18 * MIB, ..USUAL_PICTURES },
    end: End::User,
};
