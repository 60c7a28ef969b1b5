//! The body of a request, without sending it.

use serde_json::Value;

use crate::{Model, Request, protocol};

/// Returns the body of a request, as it is sent to the model's provider: it obeys the provider's rules.
#[must_use]
pub fn body(request: &Request, model: &Model) -> Value {
    protocol::lower(request, model)
}
