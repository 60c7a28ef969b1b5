//! Anthropic Messages.

use crate::{Endpoint, Model};

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod rules;
pub(crate) mod stream;

/// Returns the path under the base URL.
pub(crate) fn path(model: &Model) -> String {
    match model.endpoint {
        Endpoint::Vertex => format!("{}:streamRawPredict", model.api_id),
        Endpoint::Protocol | Endpoint::Azure { .. } => "messages".to_owned(),
    }
}
