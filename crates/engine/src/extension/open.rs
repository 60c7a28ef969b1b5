//! Opens the extensions of a directory.

use std::sync::Arc;

use codewright_proto::{Signal, Toast, ToastVariant};
use serde_json::json;

use super::{Extension, Extensions, Failure, IsNew, events};
use crate::hooks;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::plugins;

/// The characters of a failure that are shown.
const MAX_SHOWN_CHARS: usize = 300;

/// Returns the extensions of a directory, and opens them first if necessary. Without any this waits for nothing.
pub(crate) async fn ready(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Extensions {
    let sources = sources(inner, instance).await;
    let (weak, opened, directory) =
        (Arc::downgrade(inner), Arc::downgrade(instance), instance.directory_text());
    let report = move |failure: &Failure| {
        // `run` and other commands print the warnings of the instance.
        if let Some(instance) = opened.upgrade() {
            let Failure { extension, message } = failure;
            instance.warn(&format!("{extension}: {}", shortened(message)));
        }
        if let Some(inner) = weak.upgrade() {
            report(&inner, &directory, failure);
        }
    };
    let (extensions, is_new) = inner.extensions.set(&instance.directory, sources, report);
    if is_new == IsNew::Yes {
        events::start(inner, &instance.directory_text(), &extensions);
    }
    extensions
}

/// Returns the sources of extensions, in the order in which they are called. A source that has not changed since the
/// last call is the same value.
async fn sources(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Vec<Arc<dyn Extension>> {
    let plugins = plugins::open::extensions(inner, instance).await;
    // After the plugins, so that a hook that guards calls sees what runs.
    plugins.into_iter().chain(hooks::fire::extension(inner, instance)).collect()
}

fn shortened(message: &str) -> String {
    message.chars().take(MAX_SHOWN_CHARS).collect()
}

/// Logs a failure and shows it to clients.
fn report(inner: &Inner, directory: &str, failure: &Failure) {
    let Failure { extension, message } = failure;
    let (journal, text) = (inner.journal.clone(), format!("{extension}: {message}"));
    let about = json!({ "directory": directory, "plugin": extension });
    inner.tasks.spawn(async move { journal.note(Level::Error, "plugin", &text, Some(about)).await });
    let toast = Toast {
        title: Some(extension.clone()),
        message: shortened(message),
        variant: ToastVariant::Error,
        duration: None,
    };
    inner.store.signal(Signal::TuiToastShow { directory: directory.to_owned(), toast });
}
