//! Gemini, for AI Studio and Vertex AI.

use crate::Model;

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod rules;
mod schema;
pub(crate) mod stream;

/// Returns the path under the base URL. It contains the model's name.
pub(crate) fn path(model: &Model) -> String {
    // The id of a tuned model contains its collection: `tunedModels/…`.
    let collection = if model.api_id.contains('/') { "" } else { "models/" };
    format!("{collection}{}:streamGenerateContent?alt=sse", model.api_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    #[test]
    fn the_model_is_part_of_the_path() {
        for (id, expected) in [
            ("gemini-2.5-pro", "models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
            ("tunedModels/mine", "tunedModels/mine:streamGenerateContent?alt=sse"),
        ] {
            assert_eq!(path(&Model::new("google", id, Protocol::Gemini, "https://h")), expected);
        }
    }
}
