//! The tokens of MCP servers on this machine, in `mcp-auth.json`.
//!
//! The keys of the file are names of servers, as in OpenCode's. A token is only found with the address that it was stored
//! for. If two servers have the same name, the key of the second contains its address. OpenCode's file is read too and never
//! written; ours marks its entries as signed out.

use std::path::PathBuf;

use codewright_llm::vault::{Lock, Records};
use codewright_mcp::auth::Grant;
use serde_json::{Map, Value};
use url::Url;

/// The file of tokens, and OpenCode's.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile {
    own: Records,
    original: Records,
}

impl TokenFile {
    pub(crate) fn new(own: PathBuf, original: PathBuf) -> Self {
        Self { own: Records::new(own), original: Records::new(original) }
    }

    /// Returns the tokens of a server.
    pub(crate) fn read(&self, name: &str, url: &Url) -> Result<Option<Grant>, String> {
        let own = self.own.read().map_err(|error| error.to_string())?;
        if own.get(&long_key(name, url)).is_some_and(Value::is_null) {
            return Ok(None);
        }
        if let Some(key) = key_of(&own, name, url) {
            return Ok(own.get(&key).and_then(Grant::read));
        }
        if self.original.path() == self.own.path() {
            return Ok(None);
        }
        let original = self.original.read().map_err(|error| error.to_string())?;
        Ok(original.get(name).filter(|entry| is_at(entry, url)).and_then(Grant::read))
    }

    /// Stores the tokens of a sign-in.
    pub(crate) fn store(&self, name: &str, url: &Url, grant: &Grant) -> Result<(), String> {
        self.change(|entries| insert(entries, name, url, grant))
    }

    /// Stores renewed tokens, unless the user signed out or in again meanwhile.
    pub(crate) fn replace(&self, name: &str, url: &Url, old: &Grant, new: &Grant) -> Result<(), String> {
        self.change(|entries| {
            let is_signed_out = entries.get(&long_key(name, url)).is_some_and(Value::is_null);
            let stored = key_of(entries, name, url).and_then(|key| entries.get(&key).and_then(Grant::read));
            let is_same = match stored {
                Some(stored) => stored.refresh == old.refresh,
                // The tokens come from OpenCode's file.
                None => !is_signed_out,
            };
            if is_same {
                insert(entries, name, url, new);
            }
        })
    }

    /// Removes the tokens of a server. Returns whether there were any.
    pub(crate) fn remove(&self, name: &str, url: &Url) -> Result<bool, String> {
        let original = self.original.read().map_err(|error| error.to_string())?;
        let in_original = original.get(name).is_some_and(|entry| is_at(entry, url));
        let had_tokens = self.read(name, url)?.is_some();
        self.change(|entries| {
            if let Some(key) = key_of(entries, name, url) {
                entries.remove(&key);
            }
            if in_original {
                entries.insert(long_key(name, url), Value::Null);
            }
        })?;
        Ok(had_tokens)
    }

    /// Locks the renewal of the tokens of a server against other processes.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<Lock>, String> {
        self.own.try_lock(name).map_err(|error| error.to_string())
    }

    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), String> {
        self.own.change(change).map_err(|error| error.to_string())
    }
}

/// Whether an entry belongs to a server at this address.
fn is_at(entry: &Value, url: &Url) -> bool {
    let stored = entry.get("serverUrl").and_then(Value::as_str).and_then(|stored| Url::parse(stored).ok());
    stored.is_some_and(|stored| stored == *url)
}

fn long_key(name: &str, url: &Url) -> String {
    format!("{name} {url}")
}

fn insert(entries: &mut Map<String, Value>, name: &str, url: &Url, grant: &Grant) {
    let long = long_key(name, url);
    entries.remove(&long);
    let is_free = entries.get(name).is_none_or(|entry| is_at(entry, url) || entry.get("tokens").is_none());
    entries.insert(if is_free { name.to_owned() } else { long }, grant.entry());
}

fn key_of(entries: &Map<String, Value>, name: &str, url: &Url) -> Option<String> {
    let keys = [name.to_owned(), long_key(name, url)];
    keys.into_iter().find(|key| entries.get(key).is_some_and(|entry| is_at(entry, url)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    fn grant(url: &Url, access: &str) -> Grant {
        let entry =
            json!({"tokens": {"accessToken": access, "refreshToken": "r"}, "serverUrl": url.as_str()});
        Grant::read(&entry).unwrap()
    }

    #[test]
    fn a_token_is_bound_to_the_address_of_its_server() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("mcp-auth.json");
        let file = TokenFile::new(own.clone(), directory.path().join("original.json"));
        let [mine, other] = ["https://mine/mcp", "https://other/mcp"].map(|url| Url::parse(url).unwrap());
        let access = |url: &Url| file.read("a", url).unwrap().map(|grant| grant.access);
        file.store("a", &mine, &grant(&mine, "1")).unwrap();
        assert_eq!((access(&mine).as_deref(), access(&other)), (Some("1"), None));
        // A server of another project has the same name.
        file.store("a", &other, &grant(&other, "2")).unwrap();
        assert_eq!((access(&mine).as_deref(), access(&other).as_deref()), (Some("1"), Some("2")));
        assert!(file.remove("a", &mine).unwrap() && !file.remove("a", &mine).unwrap());
        assert_eq!((access(&mine), access(&other).as_deref()), (None, Some("2")));
        assert_eq!(std::fs::metadata(own).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn tokens_of_opencode_are_used_and_left_in_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let original = directory.path().join("original.json");
        let url = Url::parse("https://h/mcp").unwrap();
        let text = json!({"a": grant(&url, "1").entry()}).to_string();
        std::fs::write(&original, &text).unwrap();
        let file = TokenFile::new(directory.path().join("own.json"), original.clone());
        assert_eq!(file.read("a", &url).unwrap().unwrap().access, "1");
        assert!(file.remove("a", &url).unwrap() && file.read("a", &url).unwrap().is_none());
        assert_eq!(std::fs::read_to_string(original).unwrap(), text);
        file.store("a", &url, &grant(&url, "2")).unwrap();
        assert_eq!(file.read("a", &url).unwrap().unwrap().access, "2");
    }
}
