//! The session of a step and its open directory, resolved once for everything that the step does.

use std::path::Path;
use std::sync::Arc;

use codewright_proto::{Session, SessionId};

use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;

/// A session and its instance.
pub(crate) struct Context {
    pub(crate) session: Session,
    pub(crate) instance: Arc<Instance>,
}

impl Context {
    /// Reads a session and opens its directory.
    pub(crate) async fn resolve(inner: &Inner, id: &SessionId) -> Result<Self, Error> {
        let session = inner.session(id).await?;
        let instance = inner.instance(Path::new(&session.directory)).await?;
        Ok(Self { session, instance })
    }
}
