//! Configuration that organisations serve to those who signed in at their address.
//!
//! A copy is good for an hour, in this process and the next; after that the address is asked again,
//! and where that fails the copy serves on, with a warning. Nobody is asked whom nobody signed in at.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use codewright_config::{Dirs, Env, Remote};
use codewright_llm::Client;
use codewright_llm::oauth::well_known;
use codewright_llm::vault::{Credential, Stored};
use codewright_proto::Clock;

/// How long a copy is good.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// How long all of them may keep a directory from being opened.
const WAIT: Duration = Duration::from_secs(8);
/// Addresses that are asked.
const ADDRESSES_LIMIT: usize = 8;
/// The longest name of a copy's file.
const NAME_LIMIT_CHARS: usize = 120;
/// The most bytes a copy may have.
const COPY_LIMIT_BYTES: u64 = 2 * 1024 * 1024;

/// The environment with the tokens of organisations in it.
pub(crate) fn environment(env: &Env, stored: &Stored) -> Env {
    env.with(signed_in(stored).map(|(_, variable, token)| (variable, token)))
}

/// What the addresses serve, and what was wrong.
pub(crate) async fn served(
    (llm, dirs, clock): (&Client, &Dirs, &Clock),
    stored: &Stored,
) -> (Vec<Remote>, Vec<String>) {
    let until = tokio::time::Instant::now() + WAIT;
    let (mut served, mut warnings) = (Vec::new(), Vec::new());
    for (url, variable, token) in signed_in(stored).take(ADDRESSES_LIMIT) {
        let path = copy(dirs, url);
        let (text, age) = read(clock, &path);
        let text = match text.filter(|_| age.is_some_and(|age| age < FRESH)) {
            Some(text) => Some(text),
            None => {
                let asked = well_known::config(llm, url, variable, token);
                match tokio::time::timeout_at(until, asked).await {
                    Ok(Ok(config)) => {
                        let text = config.to_string();
                        // Without a copy the address is asked again the next time.
                        drop(keep(&path, &text));
                        Some(text)
                    }
                    failed => {
                        let why = match failed {
                            Ok(Err(error)) => error.to_string(),
                            Ok(Ok(_)) | Err(_) => format!("it did not answer within {} s", WAIT.as_secs()),
                        };
                        let (text, _) = read(clock, &path);
                        let instead = if text.is_some() { "an older copy is used" } else { "it is left out" };
                        warnings
                            .push(format!("the configuration of `{url}` cannot be had, {instead}: {why}"));
                        text
                    }
                }
            }
        };
        let env = Env::from_pairs([(variable, token)]);
        served.extend(text.map(|text| Remote { url: url.to_owned(), text, env }));
    }
    (served, warnings)
}

/// Where somebody signed in, and what for: address, variable, token.
fn signed_in(stored: &Stored) -> impl Iterator<Item = (&str, &str, &str)> {
    stored.iter().filter_map(|(url, credential, _)| match credential {
        Credential::WellKnown { key, token } => Some((url, key.as_str(), token.expose())),
        Credential::Api { .. } | Credential::OAuth(_) => None,
    })
}

fn copy(dirs: &Dirs, url: &str) -> PathBuf {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
    let name: String = url.chars().map(safe).take(NAME_LIMIT_CHARS).collect();
    dirs.cache.join("served").join(format!("{name}.json"))
}

/// The copy, and how long ago it was made.
fn read(clock: &Clock, path: &PathBuf) -> (Option<String>, Option<Duration>) {
    let Ok(metadata) = std::fs::metadata(path) else { return (None, None) };
    if metadata.len() > COPY_LIMIT_BYTES {
        return (None, None);
    }
    let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let age = written.map(|written| Duration::from_millis(clock.now_ms()).saturating_sub(written));
    (std::fs::read_to_string(path).ok(), age)
}

/// Puts the copy in place at once, for the user alone to read.
fn keep(path: &PathBuf, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Some(folder) = path.parent() {
        codewright_workspace::make_private_directory(folder)?;
    }
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| std::fs::rename(&beside, path))
}
