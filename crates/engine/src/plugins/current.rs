//! Opens a directory with the plugins that are on the disk now.

use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;

/// Returns the instance of a directory. If a file with code was added, changed or removed, the directory is opened again,
/// so that a repository's new code waits for the user's trust.
pub(crate) async fn current(inner: &Inner, directory: &Path) -> Result<Arc<Instance>, Error> {
    let instance = inner.instance(directory).await?;
    if instance.code.is_current() {
        return Ok(instance);
    }
    inner.forget_instance(&instance.directory).await;
    inner.instance(directory).await
}
