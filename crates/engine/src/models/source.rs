//! The source of the model catalog: the copy embedded in the program, or a newer one in the cache.
//!
//! A single run only reads it. A server fetches a new copy daily, and directories that are
//! opened later use it. Without a network the last copy is kept.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use codewright_config::{Dirs, Env, env as names};
use codewright_llm::Client;
use codewright_llm::catalog::{Catalog, LIMIT_BYTES};
use codewright_proto::Clock;

use crate::Error;

/// The age at which a copy is replaced.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// The limit for fetching a copy.
const FETCH_DEADLINE: Duration = Duration::from_secs(60);
const ADDRESS: &str = "https://models.dev";

/// The catalog of this process. It is opened when it is first needed.
pub(crate) struct Source {
    path: PathBuf,
    opened: Mutex<Option<Opened>>,
}

#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) catalog: Arc<Catalog>,
    /// The reason why the copy in the cache was not used.
    pub(crate) warning: Option<String>,
}

impl Source {
    pub(crate) fn new(dirs: &Dirs) -> Self {
        Self { path: dirs.cache.join("models.json"), opened: Mutex::new(None) }
    }

    /// The copy in the cache if it is readable, else the embedded one.
    pub(crate) fn open(&self) -> Opened {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get_or_insert_with(|| read(&self.path)).clone()
    }

    /// Fetches a copy, even if the last one is recent.
    pub(crate) async fn refresh(&self, env: &Env, llm: &Client) -> Result<(), Error> {
        let url = address(env);
        let text = codewright_llm::fetch(llm, &url, LIMIT_BYTES, FETCH_DEADLINE).await?;
        let path = self.path.clone();
        let opened = tokio::task::spawn_blocking(move || -> Result<Opened, Error> {
            let text = Catalog::compact(&text)?;
            write(&path, &text).map_err(|error| {
                Error::machine(format!("the models cannot be stored in `{}`: {error}", path.display()))
            })?;
            Ok(Opened { catalog: Arc::new(Catalog::read(text)?), warning: None })
        });
        let opened =
            opened.await.map_err(|error| Error::machine(format!("reading the models failed: {error}")))??;
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(())
    }

    /// Fetches a copy when the last one is a day old. Never returns.
    pub(crate) async fn keep_fresh(&self, env: &Env, llm: &Client, clock: &Clock) -> Infallible {
        while !env.is_on(names::DISABLE_MODELS_FETCH) {
            let age = age(&self.path, clock.now_ms());
            if age.is_none_or(|age| age >= FRESH) {
                // Without a network the last copy is used until the next attempt.
                drop(self.refresh(env, llm).await);
            }
            tokio::time::sleep(age.map_or(FRESH, |age| FRESH.saturating_sub(age)).max(FRESH / 24)).await;
        }
        std::future::pending().await
    }
}

fn address(env: &Env) -> String {
    let base = env.filled(names::MODELS_URL).unwrap_or(ADDRESS);
    if base.ends_with(".json") { base.to_owned() } else { format!("{}/api.json", base.trim_end_matches('/')) }
}

/// The time since the file was written, or `None` if it is missing.
fn age(path: &Path, now_ms: u64) -> Option<Duration> {
    let written = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Duration::from_millis(now_ms).saturating_sub(written))
}

fn read(path: &Path) -> Opened {
    let embedded = |warning| Opened { catalog: Arc::new(Catalog::embedded()), warning };
    let copy = match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() <= LIMIT_BYTES as u64 => std::fs::read_to_string(path),
        Ok(_) => Err(std::io::Error::other(format!("it is larger than {LIMIT_BYTES} bytes"))),
        Err(_) => return embedded(None),
    };
    let catalog = copy
        .map_err(|error| error.to_string())
        .and_then(|text| Catalog::read(text).map_err(|error| error.to_string()));
    match catalog {
        Ok(catalog) => Opened { catalog: Arc::new(catalog), warning: None },
        Err(why) => embedded(Some(format!("`{}` is ignored: {why}", path.display()))),
    }
}

/// Replaces the file atomically: a reader gets the old content or the new one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().ok_or_else(|| std::io::Error::other("it has no parent directory"))?;
    codewright_workspace::make_private_directory(folder)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let file = codewright_workspace::private_file().create(true).truncate(true).write(true).open(&temporary);
    let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    let written = written.and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The file may not exist: creating it may be what failed.
        drop(std::fs::remove_file(&temporary));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_may_be_a_directory_or_a_file() {
        for (written, expected) in [
            ("", "https://models.dev/api.json"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/api.json"),
            ("http://127.0.0.1:9/x.json", "http://127.0.0.1:9/x.json"),
        ] {
            assert_eq!(address(&Env::from_pairs([("OPENCODE_MODELS_URL", written)])), expected);
        }
    }

    #[test]
    fn a_damaged_copy_is_ignored_with_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        assert!(read(&path).warning.is_none());
        for text in ["", "{", "[]", "{}", "{\n\"a\":{\n}\n", "\u{0}"] {
            std::fs::write(&path, text).unwrap();
            let opened = read(&path);
            assert!(opened.warning.unwrap().contains("models.json"), "{text:?}");
            assert!(opened.catalog.provider("anthropic").is_some());
        }
    }

    #[test]
    fn a_copy_is_written_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/models.json");
        let text = Catalog::compact(r#"{"p":{"id":"p","env":[],"models":{"m":{"name":"M"}}}}"#).unwrap();
        write(&path, &text).unwrap();
        write(&path, &text).unwrap();
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let opened = read(&path);
        assert_eq!(opened.catalog.models("p").unwrap()[0].name, "M");
        assert!(opened.catalog.provider("anthropic").is_none());
    }
}
