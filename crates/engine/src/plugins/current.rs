//! Opens a directory with the plugins that are on the disk now.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::Signal;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::open::extensions;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::packages::install::installed;

/// The longest time that a list waits for plugins that are starting, after their packages are installed.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// The task that opens a directory with its plugins. `None` if the program is ending.
type Loading = JoinHandle<Option<Result<Arc<Instance>, Error>>>;

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

/// Returns a directory with the changes of its plugins, if they are loaded within [`LIST_PATIENCE`]. An installation is
/// waited for as long as a prompt waits, because a client that gets a list without the agents of a plugin that was just
/// added would use others. A client that fetches its lists again gives a `limit` for both.
pub(crate) async fn loaded(
    inner: &Arc<Inner>,
    instance: Arc<Instance>,
    limit: Option<Duration>,
) -> Arc<Instance> {
    if !instance.has_plugins() || inner.plugins.is_disabled() {
        return instance;
    }
    let (owned, directory, ending) =
        (inner.clone(), instance.directory.clone(), inner.plugins.ending.clone());
    // The work goes on if the caller stops waiting.
    let mut loading: Loading =
        inner.tasks.spawn(async move { ending.run_until_cancelled(current(&owned, &directory)).await });
    let waiting = async {
        installed(inner, &instance).await;
        timeout(LIST_PATIENCE, &mut loading).await
    };
    let found = match limit {
        Some(limit) => timeout(limit, waiting).await.and_then(|found| found),
        None => waiting.await,
    };
    match found {
        Ok(Ok(Some(Ok(changed)))) => changed,
        // Ending, or a directory that cannot be opened again, which the next request reports.
        Ok(Ok(Some(Err(_)) | None) | Err(_)) => instance,
        Err(_late) => {
            report_later(inner, &instance, loading);
            instance
        }
    }
}

/// Tells the clients of a directory to fetch their lists again, if its plugins change it after a list was sent.
fn report_later(inner: &Arc<Inner>, shown: &Arc<Instance>, loading: Loading) {
    // Several lists wait together, and one signal is enough for all.
    if !inner.plugins.begin_report(&shown.directory) {
        return;
    }
    let (owned, shown) = (inner.clone(), shown.clone());
    inner.tasks.spawn(async move {
        let changed = loading.await;
        owned.plugins.end_report(&shown.directory);
        if let Ok(Some(Ok(changed))) = changed
            && !Arc::ptr_eq(&changed, &shown)
        {
            owned.store.signal(Signal::InstanceDisposed { directory: shown.directory_text() });
        }
    });
}
