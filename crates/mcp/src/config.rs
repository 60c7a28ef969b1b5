//! The configuration of servers.
//!
//! Reading never fails as a whole: an entry that cannot be used becomes an error with one sentence, which is the status
//! of that server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

/// The time limit of a connection and of a request, if the configuration has none.
const DEFAULT_CONNECT: Duration = Duration::from_secs(30);
/// The time limit of a tool call without progress, if the configuration has none.
const DEFAULT_CALL: Duration = Duration::from_secs(60);
/// The longest configurable time limit.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of servers that are started.
const MAX_SERVERS: usize = 100;

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub kind: Kind,
    /// Whether it is started by itself.
    pub is_enabled: bool,
    /// The time limit of the connection and of each request but tool calls.
    pub timeout: Duration,
    /// The time limit of a tool call without progress.
    pub call_timeout: Duration,
    /// Whether it may request answers of the model, each with the user's consent.
    pub can_sample: bool,
    /// Whether a repository's configuration defines it.
    pub of_repository: bool,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Local(Local),
    Remote(Remote),
}

/// A program that serves on its input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    pub program: String,
    pub args: Vec<String>,
    /// Its directory, relative to the directory of the instance.
    pub cwd: Option<String>,
    pub environment: BTreeMap<String, String>,
    /// Whether it has no more rights than a command of the model.
    pub is_confined: bool,
    /// Whether it has the network, if the configuration says so.
    pub network: Option<bool>,
}

/// A server at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub url: Url,
    pub headers: BTreeMap<String, String>,
    pub oauth: OAuth,
    pub wire: Wire,
}

/// The transport of a remote server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Streamable HTTP, or else the older transport.
    Either,
    Http,
    Sse,
}

/// The sign-in of a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuth {
    /// The server never needs one.
    Off,
    On {
        client_id: Option<String>,
        client_secret: Option<String>,
        scope: Option<String>,
        redirect_uri: Option<String>,
        callback_port: Option<u16>,
        /// The sign-in server, if it is on a local network. Only the user's configuration can name it.
        server: Option<Box<Url>>,
    },
}

impl Default for OAuth {
    fn default() -> Self {
        Self::On {
            client_id: None,
            client_secret: None,
            scope: None,
            redirect_uri: None,
            callback_port: None,
            server: None,
        }
    }
}

impl Config {
    /// Reads one entry of `mcp`.
    ///
    /// # Errors
    ///
    /// Fails with a sentence for the user.
    pub fn parse(entry: &Value, experimental_timeout: Option<u64>) -> Result<Self, String> {
        let Some(entry) = entry.as_object() else { return Err("The entry is not an object.".to_owned()) };
        let timeout = match entry.get("timeout") {
            None | Some(Value::Null) => experimental_timeout,
            Some(value) => match value.as_u64().filter(|ms| *ms > 0) {
                Some(ms) => Some(ms),
                None => return Err("`timeout` is not a positive number of milliseconds.".to_owned()),
            },
        };
        let timeout = timeout.map(|ms| Duration::from_millis(ms).min(MAX_TIMEOUT));
        // A switch that is not understood must not start a server.
        let (enabled, sampling) = (flag(entry, "enabled")?, flag(entry, "sampling")?);
        Ok(Self {
            kind: kind(entry)?,
            is_enabled: enabled != Some(false),
            timeout: timeout.unwrap_or(DEFAULT_CONNECT),
            call_timeout: timeout.unwrap_or(DEFAULT_CALL),
            can_sample: sampling == Some(true),
            of_repository: false,
        })
    }
}

impl Config {
    /// A repository must not make the program reach servers of a local network.
    fn without_local_sign_in(mut self) -> Self {
        if let (true, Kind::Remote(Remote { oauth: OAuth::On { server, .. }, .. })) =
            (self.of_repository, &mut self.kind)
        {
            *server = None;
        }
        self
    }
}

/// The servers of a configuration in its order, each with its error if it cannot be used.
///
/// `of_repository` tells whether a repository defines the server.
pub fn configured(
    config: &Value,
    of_repository: impl Fn(&str) -> bool,
) -> Vec<(String, Result<Config, String>)> {
    let timeout = config.pointer("/experimental/mcp_timeout").and_then(Value::as_u64).filter(|ms| *ms > 0);
    let Some(entries) = config.get("mcp").and_then(Value::as_object) else { return Vec::new() };
    let nested = nested(entries);
    let named = entries.iter().filter(|(name, _)| nested.is_none() || *name != "servers");
    let servers = named.chain(nested.into_iter().flatten());
    // An entry that only switches a server of another file on or off, and no such server exists.
    let servers = servers.filter(|(_, entry)| {
        entry.as_object().is_none_or(|entry| {
            entry.is_empty() || entry.keys().any(|key| key != "enabled") || entry.get("enabled").is_none()
        })
    });
    servers
        .take(MAX_SERVERS)
        .map(|(name, entry)| {
            let config = Config::parse(entry, timeout);
            let config = config.map(|config| Config { of_repository: of_repository(name), ..config });
            let config = config.map(Config::without_local_sign_in);
            (name.clone(), config)
        })
        .collect()
}

/// The servers below the key `servers`, if that is not a server itself.
fn nested(entries: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let servers = entries.get("servers")?.as_object()?;
    let is_server = ["command", "url", "type"].iter().any(|key| servers.contains_key(*key));
    (!is_server && !servers.is_empty() && servers.values().all(Value::is_object)).then_some(servers)
}

fn kind(entry: &Map<String, Value>) -> Result<Kind, String> {
    let has = |key: &str| entry.get(key).is_some_and(|value| !value.is_null());
    match entry.get("type").and_then(Value::as_str) {
        Some("local" | "stdio") => local(entry),
        Some("remote") => remote(entry, Wire::Either),
        Some("http" | "streamable-http" | "streamableHttp") => remote(entry, Wire::Http),
        Some("sse") => remote(entry, Wire::Sse),
        Some(other) => Err(format!("`type` is `{}`; it can be `local` or `remote`.", short(other))),
        None if has("type") => Err("`type` is not a text; it can be `local` or `remote`.".to_owned()),
        None if has("command") => local(entry),
        None if has("url") => remote(entry, Wire::Either),
        None => Err("The entry has neither `command` nor `url`.".to_owned()),
    }
}

fn local(entry: &Map<String, Value>) -> Result<Kind, String> {
    let mut words = match entry.get("command") {
        Some(Value::String(program)) => vec![program.clone()],
        Some(Value::Array(_)) => texts(entry, "command")?,
        _ => return Err("`command` is not a list of texts.".to_owned()),
    };
    if entry.contains_key("args") {
        words.extend(texts(entry, "args")?);
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("`command` contains a NUL character.".to_owned());
    }
    let mut words = words.into_iter();
    let program = words.next().filter(|program| !program.trim().is_empty());
    let Some(program) = program else { return Err("`command` is empty.".to_owned()) };
    let cwd = match entry.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(cwd)) => Some(cwd.clone()),
        Some(_) => return Err("`cwd` is not a text.".to_owned()),
    };
    let key = if entry.contains_key("environment") { "environment" } else { "env" };
    let environment = map(entry, key)?;
    let is_bad = |(name, value): (&String, &String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    if environment.iter().any(is_bad) {
        return Err(format!("`{key}` contains a variable that cannot be set."));
    }
    let (is_confined, network) = (flag(entry, "confine")?.unwrap_or_default(), flag(entry, "network")?);
    Ok(Kind::Local(Local { program, args: words.collect(), cwd, environment, is_confined, network }))
}

fn flag(entry: &Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(format!("`{key}` is neither `true` nor `false`.")),
    }
}

fn remote(entry: &Map<String, Value>, wire: Wire) -> Result<Kind, String> {
    let Some(text) = entry.get("url").and_then(Value::as_str) else {
        return Err("`url` is not a text.".to_owned());
    };
    let url =
        Url::parse(text).map_err(|why| format!("`url` is `{}`, which is no URL: {why}.", short(text)))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("`url` is `{}`; it must begin with http:// or https://.", short(text)));
    }
    Ok(Kind::Remote(Remote { url, headers: map(entry, "headers")?, oauth: oauth(entry)?, wire }))
}

fn oauth(entry: &Map<String, Value>) -> Result<OAuth, String> {
    let oauth = match entry.get("oauth") {
        None | Some(Value::Null | Value::Bool(true)) => return Ok(OAuth::default()),
        Some(Value::Bool(false)) => return Ok(OAuth::Off),
        Some(Value::Object(oauth)) => oauth,
        Some(_) => return Err("`oauth` is neither an object nor `false`.".to_owned()),
    };
    let text = |key: &str| oauth.get(key).and_then(Value::as_str).map(str::to_owned);
    let port = match oauth.get("callbackPort") {
        None | Some(Value::Null) => None,
        Some(port) => {
            match port.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0) {
                Some(port) => Some(port),
                None => return Err("`oauth.callbackPort` is not a port.".to_owned()),
            }
        }
    };
    let server = match oauth.get("authorizationServer") {
        None | Some(Value::Null) => None,
        Some(server) => match server.as_str().and_then(|text| Url::parse(text).ok()) {
            Some(url) if url.host().is_some() => Some(Box::new(url)),
            _ => return Err("`oauth.authorizationServer` is not a URL.".to_owned()),
        },
    };
    Ok(OAuth::On {
        client_id: text("clientId"),
        client_secret: text("clientSecret"),
        scope: text("scope"),
        redirect_uri: text("redirectUri"),
        callback_port: port,
        server,
    })
}

fn texts(entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let list = entry.get(key).and_then(Value::as_array);
    let list: Option<Vec<String>> =
        list.and_then(|list| list.iter().map(|word| word.as_str().map(str::to_owned)).collect());
    list.ok_or_else(|| format!("`{key}` is not a list of texts."))
}

/// A map of texts. Numbers and switches are written as texts.
fn map(entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    let map = match entry.get(key) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(_) => return Err(format!("`{key}` is not an object.")),
    };
    map.iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
            _ => Err(format!("`{key}.{}` is not a text.", short(name))),
        })
        .collect()
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn recorded_and_older_forms_are_read() {
        let entry = json!({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "1"}, "cwd": "sub",
                           "timeout": 7000});
        let config = Config::parse(&entry, Some(1)).unwrap();
        let Kind::Local(local) = &config.kind else { panic!("{config:?}") };
        assert_eq!(
            (local.program.as_str(), &local.args[..]),
            ("npx", &["-y".to_owned(), "x".to_owned()][..])
        );
        assert_eq!((config.timeout, config.is_enabled), (Duration::from_secs(7), true));
        let older = json!({"command": "npx", "args": ["x"], "env": {"A": 1}, "enabled": false});
        let config = Config::parse(&older, Some(5)).unwrap();
        assert!(!config.is_enabled && config.timeout == Duration::from_millis(5));
        for (kind, wire) in [("remote", Wire::Either), ("http", Wire::Http), ("sse", Wire::Sse)] {
            let config = Config::parse(&json!({"type": kind, "url": "https://h/mcp", "oauth": false}), None);
            let Kind::Remote(remote) = config.unwrap().kind else { panic!("{kind}") };
            assert_eq!((remote.wire, remote.oauth), (wire, OAuth::Off));
        }
    }

    #[test]
    fn bad_entries_have_one_sentence() {
        for (entry, word) in [
            (json!(3), "object"),
            (json!({}), "neither"),
            (json!({"type": "carrier-pigeon", "command": ["x"]}), "carrier-pigeon"),
            (json!({"type": "local"}), "`command`"),
            (json!({"type": "local", "command": []}), "empty"),
            (json!({"type": "local", "command": [1]}), "`command`"),
            (json!({"type": "local", "command": ["a\0"]}), "NUL"),
            (json!({"type": "local", "command": ["a"], "environment": {"A=B": "1"}}), "variable"),
            (json!({"type": "local", "command": ["a"], "network": "yes"}), "`network`"),
            (json!({"type": "local", "command": ["a"], "enabled": "false"}), "`enabled`"),
            (json!({"type": "local", "command": ["a"], "sampling": "no"}), "`sampling`"),
            (json!({"type": "local", "command": ["a"], "confine": 1}), "`confine`"),
            (json!({"type": "remote", "url": "ftp://h"}), "http://"),
            (json!({"type": "remote", "url": "::"}), "no URL"),
            (json!({"type": "remote", "url": "http://h", "headers": {"a": []}}), "headers.a"),
            (json!({"type": "remote", "url": "http://h", "oauth": 1}), "oauth"),
            (json!({"type": "remote", "url": "http://h", "timeout": 0}), "timeout"),
            (json!({"type": "remote", "url": "http://h", "oauth": {"authorizationServer": "x"}}), "oauth"),
        ] {
            let error = Config::parse(&entry, None).unwrap_err();
            assert!(
                error.contains(word) && error.ends_with('.') && !error.contains('\n'),
                "{entry}: {error}"
            );
        }
    }

    #[test]
    fn only_the_user_names_a_sign_in_server() {
        let oauth = json!({"authorizationServer": "https://login.lan/"});
        let config = json!({"mcp": {"a": {"type": "remote", "url": "https://mcp.lan/", "oauth": oauth}}});
        for (of_repository, expected) in [(false, Some("https://login.lan/")), (true, None)] {
            let (_, found) = configured(&config, |_| of_repository).remove(0);
            let Kind::Remote(Remote { oauth: OAuth::On { server, .. }, .. }) = found.unwrap().kind else {
                panic!()
            };
            assert_eq!(server.as_ref().map(|url| url.as_str()), expected);
        }
    }

    #[test]
    fn servers_may_be_nested() {
        let config = json!({"mcp": {"servers": {"a": {"url": "http://h"}}, "b": {"command": "x"},
                                    "only": {"enabled": true}}});
        let names: Vec<_> = configured(&config, |_| false).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "a"]);
    }
}
