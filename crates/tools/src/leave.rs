//! Leave that a call finds out to need only while it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Ask, ToolError};

/// Puts a further ask to whoever granted those that the call began with.
///
/// Meant for what cannot be known before: where a redirect leads, whose address a name is.
#[derive(Clone)]
pub struct Leave(Arc<Put>);

type Put = dyn Fn(Ask) -> Pin<Box<dyn Future<Output = Result<(), ToolError>> + Send>> + Send + Sync;

impl Leave {
    /// Calls `put` for each ask.
    pub fn new<F>(put: impl Fn(Ask) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        Self(Arc::new(move |ask| Box::pin(put(ask))))
    }

    /// Grants nothing.
    pub fn none() -> Self {
        Self::new(|ask| async move {
            Err(ToolError::Model(format!("Leave for `{}` was not given", ask.permission)))
        })
    }

    pub(crate) async fn ask(&self, ask: Ask) -> Result<(), ToolError> {
        (self.0)(ask).await
    }
}
