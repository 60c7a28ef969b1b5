//! The settings of a server among others: the key `node` of the user's configuration, completed by flags.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::Error;

/// The default number of sessions that run at the same time.
const DEFAULT_SESSIONS: u64 = 256;
/// The largest number of sessions that run at the same time.
const MAX_SESSIONS: u64 = 100_000;
/// The default number of sessions that wait, besides those that run.
const DEFAULT_WAITING: u64 = 1024;
/// How long running sessions may take to end while a server drains.
const DEFAULT_DRAIN_SECONDS: u64 = 300;
/// The longest such time.
const MAX_DRAIN_SECONDS: u64 = 24 * 3600;
/// The shortest secret.
const MIN_SECRET_BYTES: usize = 16;
/// The longest name.
const MAX_NAME_BYTES: usize = 64;
/// The maximum number of directories.
const MAX_ROOTS: usize = 256;

/// The settings of a server among others.
#[derive(Clone)]
pub struct NodeSettings {
    /// The name of the server, which a restart does not change.
    pub name: String,
    /// The address at which other servers reach it, without a slash at the end.
    pub address: Option<String>,
    /// The secret that the servers have in common. It exists if the address does.
    pub secret: Option<String>,
    /// The directories in which it can work. Empty: all that exist.
    pub roots: Vec<PathBuf>,
    /// How many sessions run at the same time.
    pub sessions: usize,
    /// How many more may wait for these to end.
    pub waiting: usize,
    /// How long running sessions may take to end while it drains.
    pub drain: Duration,
}

impl NodeSettings {
    /// Reads the key `node`. `address` is the flag, `secret` the variable; both win.
    ///
    /// # Errors
    ///
    /// Fails for a value that cannot be used, so that a server with a wrong setting does not start.
    pub fn read(node: &Value, address: Option<&str>, secret: Option<&str>) -> Result<Self, Error> {
        let filled = |key: &str| node[key].as_str().filter(|text| !text.is_empty());
        let address = address.or_else(|| filled("address")).map(parse_address).transpose()?;
        let secret = secret.or_else(|| filled("secret"));
        if address.is_some() && secret.is_none_or(|secret| secret.len() < MIN_SECRET_BYTES) {
            return Err(Error::invalid(format!(
                "`node.address` needs `node.secret`, a secret of at least {MIN_SECRET_BYTES} characters that all servers \
                 have in common"
            )));
        }
        let unnamed = || {
            let of_address = address.as_deref().and_then(|address| address.split_once("://"));
            of_address.map_or_else(|| format!("process {}", std::process::id()), |(_, host)| host.to_owned())
        };
        let name = filled("name").map_or_else(unnamed, str::to_owned);
        if name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "`node.name` must have at most {MAX_NAME_BYTES} bytes and no control characters"
            )));
        }
        let listed = node["roots"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let roots = listed.map(parse_root).collect::<Result<Vec<_>, _>>()?;
        if roots.len() > MAX_ROOTS {
            return Err(Error::invalid(format!("`node.roots` has more than {MAX_ROOTS} directories")));
        }
        let sessions = node["sessions"].as_u64().unwrap_or(DEFAULT_SESSIONS).clamp(1, MAX_SESSIONS);
        let waiting = node["waiting"].as_u64().unwrap_or(DEFAULT_WAITING).min(MAX_SESSIONS);
        let drain = node["drain_seconds"].as_u64().unwrap_or(DEFAULT_DRAIN_SECONDS).min(MAX_DRAIN_SECONDS);
        Ok(Self {
            name,
            address,
            secret: secret.map(str::to_owned),
            roots,
            sessions: sessions as usize,
            waiting: waiting as usize,
            drain: Duration::from_secs(drain),
        })
    }

    /// Whether a directory is inside the configured ones.
    #[must_use]
    pub fn may_work(&self, directory: &Path) -> bool {
        self.roots.is_empty() || self.roots.iter().any(|root| directory.starts_with(root))
    }
}

impl std::fmt::Debug for NodeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns the scheme, host and port of an address.
fn parse_address(text: &str) -> Result<String, Error> {
    let wrong = |why: &str| Error::invalid(format!("`node.address` {why}: write `http://HOST:PORT`"));
    let url = Url::parse(text).map_err(|_| wrong("is not an address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("is not an address of HTTP"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not have a user or a password"));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must not have a path or a query"));
    }
    Ok(url.origin().ascii_serialization())
}

/// Returns a directory with its links resolved, because the directories of sessions have none.
fn parse_root(text: &str) -> Result<PathBuf, Error> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err(Error::invalid(format!("`node.roots`: `{text}` is not an absolute path")));
    }
    // A directory that does not exist yet may be created later.
    Ok(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    #[track_caller]
    fn check(node: &Value, expected: Result<(&str, Option<&str>), &str>) {
        let read = NodeSettings::read(node, None, None);
        match (read, expected) {
            (Ok(read), Ok((name, address))) => {
                assert_eq!((read.name.as_str(), read.address.as_deref()), (name, address), "{node}");
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{node}: {error}"),
            (read, _) => panic!("{node}: {read:?}"),
        }
    }

    #[test]
    fn an_address_needs_a_secret_and_nothing_else() {
        let with = |address: &str| json!({"address": address, "secret": SECRET});
        check(&with("http://10.0.0.1:4096"), Ok(("10.0.0.1:4096", Some("http://10.0.0.1:4096"))));
        check(&with("https://a.example/"), Ok(("a.example", Some("https://a.example"))));
        check(&json!({"name": "one", "address": "", "secret": ""}), Ok(("one", None)));
        check(&json!({"address": "http://a:1"}), Err("needs `node.secret`"));
        check(&json!({"address": "http://a:1", "secret": "short"}), Err("at least 16"));
        check(&with("ftp://a"), Err("not an address of HTTP"));
        check(&with("a:1"), Err("not an address of HTTP"));
        check(&with("http://me:hush@a"), Err("must not have a user"));
        check(&with("http://a/path"), Err("must not have a path"));
        check(&json!({"name": "a\nb"}), Err("no control characters"));
        check(&json!({"roots": ["relative"]}), Err("not an absolute path"));
    }

    #[test]
    fn directories_inside_the_roots_are_allowed() {
        let settings = NodeSettings::read(&json!({"roots": ["/srv/one", "/srv/two"]}), None, None).unwrap();
        for (directory, expected) in
            [("/srv/one", true), ("/srv/two/x", true), ("/srv/onex", false), ("/srv", false), ("/", false)]
        {
            assert_eq!(settings.may_work(Path::new(directory)), expected, "{directory}");
        }
        assert!(NodeSettings::read(&json!({}), None, None).unwrap().may_work(Path::new("/x")));
    }

    #[test]
    fn the_secret_is_not_printed() {
        let node = json!({"address": "http://a:1", "secret": SECRET});
        assert!(!format!("{:?}", NodeSettings::read(&node, None, None).unwrap()).contains(SECRET));
    }
}
