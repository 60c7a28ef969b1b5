//! Removes secrets from the configuration before it is shown, and restores them when a client sends it back.
//!
//! A value is hidden if its key is the name of a secret, or if the configuration inserts it with `{env:…}` or `{file:…}`. In
//! other texts, credentials in addresses and in command arguments are hidden. Other users than the owner see no options of
//! providers and no arguments of commands, because any of them may be a secret. If a client sends a hidden value back, the
//! value is unchanged.

pub(crate) use codewright_config::HIDDEN;
use codewright_config::{Audience, Secrets};
use serde_json::{Map, Value};

use crate::Error;

/// Words in the keys of secrets.
const WORDS: [&str; 14] = [
    "apikey",
    "api_key",
    "api-key",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "authorization",
    "bearer",
    "credential",
    "cookie",
    "private",
    "accesskey",
];
/// Keys of secrets, as their last word.
const NAMES: [&str; 4] = ["key", "auth", "pwd", "jwt"];
/// Objects whose entries are all treated as secrets.
const HOLDERS: [&str; 3] = ["headers", "environment", "env"];

/// What is hidden from an audience.
#[derive(Clone, Copy)]
pub(crate) struct Redaction<'a> {
    /// The secrets of the configuration.
    pub(crate) secrets: &'a Secrets,
    pub(crate) audience: Audience,
}

impl Redaction<'_> {
    /// Hides the values of a configuration that may be secret.
    pub(crate) fn hide(self, value: &mut Value) {
        self.hide_below(value, &[]);
    }

    /// Hides the values of a part of a configuration, which is below these keys.
    pub(crate) fn hide_below(self, value: &mut Value, keys: &[&str]) {
        self.mask(value);
        hide_at(value, &keys.join("."));
        if self.audience == Audience::Others {
            hide_opaque(value, &mut keys.iter().map(|key| (*key).to_owned()).collect());
        }
    }

    /// Hides the inserted values in all texts.
    pub(crate) fn mask(self, value: &mut Value) {
        match value {
            Value::Object(entries) => entries.values_mut().for_each(|value| self.mask(value)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::String(text) => {
                if let Some(masked) = self.secrets.masked(text, self.audience) {
                    *text = masked;
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    /// Returns the value at a path without its secrets.
    pub(crate) fn shown(self, value: &Value, path: &str) -> Value {
        let mut shown = value.clone();
        self.mask(&mut shown);
        hide_at(&mut shown, path);
        shown
    }

    /// Removes the hidden values that a client sends back from a change.
    ///
    /// `current` is the configuration that the client received, before hiding. A list is replaced as a whole, so a list
    /// with hidden entries must be the one that the client received, or consist of entries of `own`, the content of the
    /// changed file. Secrets of other files are never copied into it.
    ///
    /// # Errors
    ///
    /// Fails if the original of a hidden value is unknown.
    pub(crate) fn unchanged(
        self,
        change: &mut Map<String, Value>,
        current: &Value,
        own: &Value,
    ) -> Result<(), Error> {
        self.take_out(change, current, own, "")
    }

    fn take_out(
        self,
        change: &mut Map<String, Value>,
        current: &Value,
        own: &Value,
        path: &str,
    ) -> Result<(), Error> {
        let keys: Vec<String> = change.keys().cloned().collect();
        for key in keys {
            let at = format!("{path}.{key}");
            let (is, owned) = (&current[&key], &own[&key]);
            let Some(value) = change.get_mut(&key) else { continue };
            if let Value::Object(entries) = value {
                let was_empty = entries.is_empty();
                self.take_out(entries, is, owned, &at)?;
                // An object of only hidden values changes nothing.
                if entries.is_empty() && !was_empty {
                    change.remove(&key);
                }
                continue;
            }
            let shown_is = self.shown(is, &at);
            let was_hidden = shown_is != *is;
            match value {
                value if was_hidden && *value == shown_is => drop(change.remove(&key)),
                value if !(has_hidden(value, &at) || was_hidden && mentions_hidden(value)) => {}
                value if *value == shown_is => drop(change.remove(&key)),
                Value::String(text) if text == HIDDEN => drop(change.remove(&key)),
                Value::Array(items) => restore(items, owned, &at)?,
                _ => return Err(unknown(&at)),
            }
        }
        Ok(())
    }
}

/// Objects of other programs, whose keys do not say which values are secrets.
fn is_opaque(keys: &[&str]) -> bool {
    match keys {
        ["provider", _, "options", rest @ ..] => rest != ["baseURL"],
        ["provider", _, "models", _, "options" | "variants", ..]
        | ["agent" | "mode", _, "options" | "args", ..]
        | ["lsp", _, "initialization", ..] => true,
        _ => false,
    }
}

/// Commands, whose first word is the program.
fn is_command(keys: &[&str]) -> bool {
    matches!(keys, ["mcp" | "lsp" | "formatter" | "agent" | "mode", _, "command"])
}

/// Hides the texts that may be secret although nothing says so.
fn hide_opaque(value: &mut Value, keys: &mut Vec<String>) {
    let hide = |text: &mut String| {
        if !text.is_empty() {
            HIDDEN.clone_into(text);
        }
    };
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                keys.push(key.clone());
                hide_opaque(value, keys);
                keys.pop();
            }
        }
        Value::Array(items) if is_command(&names) => {
            let arguments = items.iter_mut().skip(1);
            arguments.for_each(|item| hide_opaque(item, &mut OPAQUE.map(str::to_owned).to_vec()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_opaque(item, keys)),
        Value::String(text) if is_opaque(&names) => hide(text),
        Value::String(text) => {
            if let Some(shown) = without_query(text) {
                *text = shown;
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// The keys of an object whose texts are all hidden.
const OPAQUE: [&str; 3] = ["lsp", "", "initialization"];

/// Returns an address with the values of its query removed, or `None` if the text is no address or has no query.
fn without_query(text: &str) -> Option<String> {
    if !is_address(text) {
        return None;
    }
    let (place, query) = text.split_once('?')?;
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    });
    Some(format!("{place}?{}", pairs.collect::<Vec<_>>().join("&")))
}

/// Reports whether a text of a value contains the word for hidden values.
fn mentions_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HIDDEN),
        Value::Array(items) => items.iter().any(mentions_hidden),
        Value::Object(entries) => entries.values().any(mentions_hidden),
        Value::Number(_) | Value::Bool(_) | Value::Null => false,
    }
}

fn hide_at(value: &mut Value, path: &str) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                hide_at(value, &format!("{path}.{key}"));
            }
        }
        Value::Array(items) => {
            let mut is_secret = false;
            for item in items {
                let follows = std::mem::replace(&mut is_secret, item.as_str().is_some_and(names_secret));
                match item {
                    Value::String(text) if follows && !text.starts_with('-') => HIDDEN.clone_into(text),
                    item => hide_at(item, path),
                }
            }
        }
        Value::String(text) if text.is_empty() => {}
        Value::String(text) if may_be_secret(path) => HIDDEN.clone_into(text),
        Value::String(text) => {
            if let Some(shown) = without_credentials(text) {
                *text = shown;
            }
        }
        // Numbers of tokens are counts, not credentials.
        Value::Number(_) if may_be_secret(path) && !path.to_lowercase().contains("token") => {
            *value = HIDDEN.into();
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Adds the texts of a value that [`hide`] replaces.
pub(crate) fn secrets(value: &Value, found: &mut Vec<String>) {
    collect(value, &shown(value, ""), found);
}

/// Compares a value with the same value after hiding.
fn collect(value: &Value, shown: &Value, found: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(entries), shown) => {
            entries.iter().for_each(|(key, value)| collect(value, &shown[key], found));
        }
        (Value::Array(items), shown) => {
            items.iter().enumerate().for_each(|(at, item)| collect(item, &shown[at], found));
        }
        (Value::String(text), Value::String(shown)) if shown == HIDDEN => found.push(text.clone()),
        _ => {}
    }
}

/// Reports whether the last key of a path is the name of a secret.
pub(crate) fn may_be_secret(path: &str) -> bool {
    const COUNTS: [&str; 2] = ["preserve_recent_tokens", "max_tokens"];
    let path = path.trim_start_matches('.');
    let is_named = path.rsplit('.').next().is_some_and(|key| NAMES.contains(&last_word(key).as_str()));
    let path = path.to_lowercase();
    // The address of a database may have a password in any place.
    if path == "store" {
        return true;
    }
    let mut above: Vec<&str> = path.split('.').collect();
    // The keys of permission rules are patterns, such as `*token*`.
    if matches!(above[..], ["permission", _, ..] | ["agent" | "mode", _, "permission", _, ..]) {
        return false;
    }
    let key = above.pop().unwrap_or_default();
    let is_held = above.iter().any(|name| HOLDERS.contains(name));
    is_held || is_named || (!COUNTS.contains(&key) && WORDS.iter().any(|word| key.contains(word)))
}

/// Returns the last word of a key in lower case: `key` of `licenseKey`, `license_key` and `KEY`.
fn last_word(key: &str) -> String {
    let word = key.rsplit(['_', '-']).next().unwrap_or(key);
    let is_upper = |c: char| c.is_ascii_uppercase();
    let start = match word.rfind(is_upper) {
        Some(start) if word.chars().any(|c| c.is_ascii_lowercase()) => start,
        _ => 0,
    };
    word.get(start..).unwrap_or(word).to_lowercase()
}

/// Reports whether a secret follows a command argument, as after `--api-key`.
fn names_secret(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=') && may_be_secret(argument.trim_start_matches('-'))
}

/// Returns a text without the credentials in addresses and in `--name=value` or `NAME=value`; `None` if it has no
/// credentials.
fn without_credentials(text: &str) -> Option<String> {
    if let Some((name, value)) = text.split_once('=')
        && !value.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && may_be_secret(name.trim_start_matches('-'))
    {
        return Some(format!("{name}={HIDDEN}"));
    }
    let start = text.find("://")? + 3;
    if text.contains(char::is_whitespace) {
        return None;
    }
    let (scheme, rest) = text.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => authority.to_owned(),
    };
    let rest = match rest.split_once('?') {
        Some((path, query)) => {
            let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, value)) if !value.is_empty() && may_be_secret(name) => format!("{name}={HIDDEN}"),
                _ => pair.to_owned(),
            });
            format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
        }
        None => rest.to_owned(),
    };
    let shown = format!("{scheme}{authority}{rest}");
    (shown != text).then_some(shown)
}

/// Restores the hidden entries of a list, in their order.
fn restore(items: &mut [Value], own: &Value, path: &str) -> Result<(), Error> {
    let own = own.as_array().map(Vec::as_slice).unwrap_or_default();
    let was_shown = shown(&Value::from(own), path);
    let was_shown = was_shown.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut from = 0;
    for item in items.iter_mut().filter(|item| has_hidden(item, path)) {
        let rest = was_shown.get(from..).unwrap_or_default();
        let instance = rest.iter().position(|shown| shown == item).ok_or_else(|| unknown(path))?;
        let instance = from + instance;
        *item = own.get(instance).cloned().ok_or_else(|| unknown(path))?;
        from = instance + 1;
    }
    Ok(())
}

/// Returns the value at a path without its secrets.
pub(crate) fn shown(value: &Value, path: &str) -> Value {
    let mut shown = value.clone();
    hide_at(&mut shown, path);
    shown
}

/// Reports whether a value contains a hidden value.
fn has_hidden(value: &Value, path: &str) -> bool {
    match value {
        Value::String(text) if text == HIDDEN => true,
        // In a free text, these words are ordinary words.
        Value::String(text) => {
            text.contains(HIDDEN)
                && (may_be_secret(path) || text.ends_with(&format!("={HIDDEN}")) || is_address(text))
        }
        Value::Array(items) => items.iter().any(|item| has_hidden(item, path)),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| has_hidden(value, &format!("{path}.{key}")))
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => false,
    }
}

fn is_address(text: &str) -> bool {
    text.contains("://") && !text.contains(char::is_whitespace)
}

fn unknown(path: &str) -> Error {
    let path = path.trim_start_matches('.');
    Error::invalid(format!(
        "`{path}` has a value that is not shown, and it is unclear what it stands for: give the whole value, or \
         change it in its file"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_recognized_by_their_keys() {
        for (path, expected) in [
            ("provider.x.options.apiKey", true),
            ("provider.x.options.headers.X-Anything", true),
            ("mcp.x.environment.KEY", true),
            ("lsp.x.env.KEY", true),
            ("provider.x.env", false),
            ("provider.x.options.clientSecret", true),
            ("provider.x.options.credentials.private_key", true),
            ("provider.x.options.secretAccessKey", true),
            ("provider.x.options.accessKeyId", true),
            ("provider.x.options.baseURL", false),
            ("compaction.preserve_recent_tokens", false),
            ("keybinds.leader", false),
            ("permission.read.*secret*", false),
            ("agent.x.permission.read.*token", false),
            ("provider.permission.x.apiKey", true),
            ("model", false),
            ("lsp.x.initialization.licenseKey", true),
            ("lsp.x.initialization.license_key", true),
            ("provider.x.options.Subscription-Key", true),
            ("provider.x.options.APIKEY", true),
            ("provider.x.options.keyboard", false),
            ("provider.x.options.monkey", false),
            ("agent.x.author", false),
        ] {
            assert_eq!(may_be_secret(path), expected, "{path}");
        }
    }

    fn secret() -> Value {
        json!({
            "model": "a/b",
            "provider": {"a": {"options": {
                "apiKey": "sk-1", "baseURL": "https://u:p@host/v1?key=k1&x=1", "headers": {"X-A": "v", "n": ["w"]},
                "password": 12345, "maxOutputTokens": 10, "timeout": 5,
            }}},
            "mcp": {
                "m": {"command": ["run", "--api-key", "sk-2", "--token=sk-3", "API_KEY=sk-4", "--verbose", "x"],
                      "environment": {"HOME": "/x"}, "oauth": {"clientSecret": "s", "scope": "all"}},
            },
            "agent": {"x": {"prompt": "Say (hidden) and https://host/?a=b c", "description": ""}},
        })
    }

    #[test]
    fn only_possible_secrets_are_hidden() {
        let expected = json!({
            "model": "a/b",
            "provider": {"a": {"options": {
                "apiKey": HIDDEN, "baseURL": "https://(hidden)@host/v1?key=(hidden)&x=1",
                "headers": {"X-A": HIDDEN, "n": [HIDDEN]}, "password": HIDDEN, "maxOutputTokens": 10, "timeout": 5,
            }}},
            "mcp": {
                "m": {"command": ["run", "--api-key", HIDDEN, "--token=(hidden)", "API_KEY=(hidden)", "--verbose", "x"],
                      "environment": {"HOME": HIDDEN}, "oauth": {"clientSecret": HIDDEN, "scope": "all"}},
            },
            "agent": {"x": {"prompt": "Say (hidden) and https://host/?a=b c", "description": ""}},
        });
        assert_eq!(shown(&secret(), ""), expected);
        assert_eq!(shown(&expected, ""), expected, "hiding again changes nothing");
    }

    #[test]
    fn the_hidden_texts_are_listed() {
        let mut found = Vec::new();
        secrets(&secret(), &mut found);
        found.sort();
        assert_eq!(found, ["/x", "s", "sk-1", "sk-2", "v", "w"]);
    }

    fn redaction(secrets: &Secrets, audience: Audience) -> Redaction<'_> {
        Redaction { secrets, audience }
    }

    #[test]
    fn others_see_no_options_and_no_arguments() {
        let mut value = json!({
            "model": "a/b",
            "provider": {"a": {"name": "A", "options": {
                "baseURL": "https://host/v1?k=s1&x=", "custom": "s2", "nested": {"list": ["s3"]}, "timeout": 5,
            }, "models": {"m": {"name": "M", "options": {"x": "s4"}}}}},
            "lsp": {"l": {"command": ["run", "s5"], "initialization": {"a": [{"b": "s6"}], "c": true}}},
            "agent": {"x": {"prompt": "Be brief", "options": {"x": "s7"}}},
        });
        redaction(&Secrets::default(), Audience::Others).hide(&mut value);
        let expected = json!({
            "model": "a/b",
            "provider": {"a": {"name": "A", "options": {
                "baseURL": "https://host/v1?k=(hidden)&x=", "custom": HIDDEN, "nested": {"list": [HIDDEN]}, "timeout": 5,
            }, "models": {"m": {"name": "M", "options": {"x": HIDDEN}}}}},
            "lsp": {"l": {"command": ["run", HIDDEN], "initialization": {"a": [{"b": HIDDEN}], "c": true}}},
            "agent": {"x": {"prompt": "Be brief", "options": {"x": HIDDEN}}},
        });
        assert_eq!(value, expected);
    }

    fn back(mut change: Value, own: &Value) -> Result<Value, Error> {
        let entries = change.as_object_mut().unwrap();
        redaction(&Secrets::default(), Audience::Owner).unchanged(entries, &secret(), own).map(|()| change)
    }

    #[test]
    fn a_hidden_value_that_comes_back_is_unchanged() {
        let left = back(shown(&secret(), ""), &Value::Null).unwrap();
        assert!(
            !left.to_string().contains("=(hidden)") && !left.to_string().contains("\"(hidden)\""),
            "{left}"
        );
        assert_eq!(left["agent"], secret()["agent"], "a person's own words stay");
        assert!(left["provider"]["a"]["options"].get("headers").is_none());
        let change =
            json!({"provider": {"a": {"options": {"apiKey": HIDDEN, "timeout": 9}}}, "username": "bob"});
        let expected = json!({"provider": {"a": {"options": {"timeout": 9}}}, "username": "bob"});
        assert_eq!(back(change, &Value::Null).unwrap(), expected);
        let new = json!({"provider": {"a": {"options": {"apiKey": "sk-new", "empty": {}}}}});
        assert_eq!(back(new.clone(), &Value::Null).unwrap(), new);
    }

    #[test]
    fn lists_keep_the_hidden_entries_of_their_own_file() {
        let change = || json!({"mcp": {"m": {"command": ["new", "--api-key", HIDDEN, "--token=(hidden)"]}}});
        let own = json!({"mcp": {"m": {"command": ["run", "--api-key", "{env:K}", "--token=sk-3"]}}});
        let expected = json!({"mcp": {"m": {"command": ["new", "--api-key", "{env:K}", "--token=sk-3"]}}});
        assert_eq!(back(change(), &own).unwrap(), expected);
        for own in [json!({}), json!({"mcp": {"m": {"command": ["run", "--api-key", "{env:K}"]}}})] {
            let error = back(change(), &own).unwrap_err().to_string();
            assert!(error.contains("mcp.m.command") && !error.contains("sk-"), "{error}");
        }
        let moved = json!({"provider": {"a": {"options": {"baseURL": "https://(hidden)@evil/v1"}}}});
        assert!(back(moved, &secret()).is_err(), "a hidden part of an address goes nowhere else");
    }

    proptest! {
        #[test]
               fn a_hidden_value_is_never_written(
            keys in prop::collection::vec("apiKey|token|headers|command|url|x", 1..5),
            texts in prop::collection::vec("[a-z]{0,4}|--api-key|https://u:p@h/\\?token=t", 0..5),
        ) {
            let mut value = json!(texts);
            for key in &keys {
                value = json!({ key: value });
            }
            let mut change = shown(&value, "");
            let entries = change.as_object_mut().unwrap();
            if redaction(&Secrets::default(), Audience::Owner).unchanged(entries, &value, &value).is_ok() {
                prop_assert!(!change.to_string().contains("hidden"), "{change}");
            }
        }
    }
}
