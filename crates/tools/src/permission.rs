//! Permission requests of a running call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Ask, ToolError};

/// Requests a permission that the call turned out to need while it runs.
///
/// For example, the target of a redirect or the address of a host name is not known before.
#[derive(Clone)]
pub struct PermissionRequests(Arc<Request>);

type Request = dyn Fn(Ask) -> Pin<Box<dyn Future<Output = Result<(), ToolError>> + Send>> + Send + Sync;

impl PermissionRequests {
    /// Calls `request` for each permission request.
    pub fn new<F>(request: impl Fn(Ask) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        Self(Arc::new(move |ask| Box::pin(request(ask))))
    }

    /// Refuses every request.
    pub fn none() -> Self {
        Self::new(|ask| async move {
            Err(ToolError::Model(format!("Permission `{}` was not granted", ask.permission)))
        })
    }

    /// Requests a permission. Fails if it is not granted.
    pub async fn ask(&self, ask: Ask) -> Result<(), ToolError> {
        (self.0)(ask).await
    }
}
