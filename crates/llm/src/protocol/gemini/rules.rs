//! The rules of Gemini, besides those in `schema`.
//!
//! Sources: <https://ai.google.dev/api/caching#FunctionDeclaration> (names begin with a letter or `_` and have at most 64
//! characters), <https://ai.google.dev/gemini-api/docs/image-understanding> (png, jpeg, webp, heic and heif; 20 MB in a
//! request with inline data; 3600 pictures), <https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Tool>
//! (512 declarations), <https://ai.google.dev/gemini-api/docs/thought-signatures>.

use crate::protocol::rules::{CallId, Dialect, End, NameForm, PictureRules, Rules, ToolName, USUAL_PICTURES};

const MIB: usize = 1024 * 1024;

/// The rules for all models.
pub(crate) const RULES: Rules = Rules {
    tool_name: ToolName { most_bytes: 64, form: NameForm::Identifier },
    call_id: CallId::Any(256),
    most_tools: 512,
    schema: &[Dialect::FlatTop],
    pictures: PictureRules {
        most: 3000,
        most_base64_bytes: 15 * MIB,
        most_bytes_in_all: 15 * MIB,
        types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
        ..USUAL_PICTURES
    },
    end: End::User,
};
