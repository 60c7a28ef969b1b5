//! Configuration that organizations serve to users who are signed in at their address.
//!
//! A copy is valid for an hour, in this and later processes. After that it is requested again; if that fails, the copy
//! is used with a warning. Only addresses with a sign-in are requested.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use codewright_config::{Dirs, Env, Remote};
use codewright_llm::Client;
use codewright_llm::oauth::well_known;
use codewright_llm::vault::{Credential, Stored};
use codewright_proto::Clock;

/// How long a copy is valid.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// The longest delay of opening a directory by all addresses together.
const WAIT: Duration = Duration::from_secs(8);
/// The number of addresses.
const ADDRESSES_LIMIT: usize = 8;
/// The longest file name of a copy.
const NAME_LIMIT_CHARS: usize = 120;
/// The largest copy.
const COPY_LIMIT_BYTES: u64 = 2 * 1024 * 1024;

/// Returns the environment with the tokens of organizations.
pub(crate) fn environment(env: &Env, stored: &Stored) -> Env {
    env.with(signed_in(stored).map(|(_, variable, token)| (variable, token)))
}

/// Returns the served configurations and the warnings.
pub(crate) async fn served(
    llm: &Client,
    dirs: &Dirs,
    clock: &Clock,
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
                        // Without a copy the address is requested again the next time.
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

/// Returns the sign-ins: address, variable, token.
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

/// Reads a copy and its age.
fn read(clock: &Clock, path: &PathBuf) -> (Option<String>, Option<Duration>) {
    let Ok(metadata) = std::fs::metadata(path) else { return (None, None) };
    if metadata.len() > COPY_LIMIT_BYTES {
        return (None, None);
    }
    let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let age = written.map(|written| Duration::from_millis(clock.now_ms()).saturating_sub(written));
    (std::fs::read_to_string(path).ok(), age)
}

/// Replaces the copy atomically. Only the user can read it.
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
