//! Opens a directory with the plugins that are on the disk now.

use std::path::Path;
use std::sync::Arc;

use super::open::extensions;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;

/// Returns the instance of a directory. If a file with code was added, changed or removed, the directory is opened again,
/// so that a repository's new code waits for the user's trust.
pub(crate) async fn current(inner: &Arc<Inner>, directory: &Path) -> Result<Arc<Instance>, Error> {
    let mut instance = inner.instance(directory).await?;
    if !instance.code.is_current() {
        inner.forget_instance(&instance.directory).await;
        instance = inner.instance(directory).await?;
    }
    if !instance.has_plugins() {
        return Ok(instance);
    }
    extensions(inner, &instance).await;
    // The plugins may have changed the configuration.
    inner.instance(directory).await
}
