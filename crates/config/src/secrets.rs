//! What the user's configuration says about secrets: the variables whose values it uses as secrets, and the texts that it
//! inserts, which shown configuration must not contain.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use crate::{Map, env};

/// The replacement of a hidden value.
pub const HIDDEN: &str = "(hidden)";

/// Shorter values are hidden only where they were inserted, because they are also parts of ordinary words.
const MIN_PART_BYTES: usize = 8;

/// Lower-case words of at most this many letters are settings, such as `production` in a variable `NODE_ENV`.
const MAX_WORD_BYTES: usize = 11;

/// Who is shown the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The user whose configuration it is, and administrators of a server.
    Owner,
    /// Other users of a server, and programs of a repository.
    Others,
}

/// Who may see an inserted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exposure {
    Nobody,
    Owner,
    Everybody,
}

impl Exposure {
    fn covers(self, audience: Audience) -> bool {
        match self {
            Self::Nobody => false,
            Self::Owner => audience == Audience::Owner,
            Self::Everybody => true,
        }
    }

    /// The exposure of a variable's value at a key, whose names are `path`.
    pub(crate) fn of_variable(name: &str, value: &str, path: &[String]) -> Self {
        if env::is_ordinary(name) || is_setting(name, value) || is_choice(path) {
            Self::Everybody
        } else if is_prose(path) || is_place(path) || (is_address(path) && is_plain_address(value)) {
            Self::Owner
        } else {
            Self::Nobody
        }
    }

    /// The exposure of a file's text at a key.
    pub(crate) fn of_file(path: &[String]) -> Self {
        if is_choice(path) || is_prose(path) { Self::Owner } else { Self::Nobody }
    }
}

/// The keys that choose something that every client shows.
fn is_choice(path: &[String]) -> bool {
    matches!(
        parts(path)[..],
        ["model" | "small_model" | "default_agent" | "username" | "shell" | "theme" | "logLevel" | "share"]
            | ["agent" | "mode" | "command", _, "model" | "agent" | "mode" | "color" | "variant"]
    )
}

/// The keys with texts for the model, which learns them anyway.
fn is_prose(path: &[String]) -> bool {
    matches!(
        parts(path)[..],
        ["agent" | "mode", _, "prompt" | "description"] | ["command", _, "template" | "description"]
    )
}

/// The options of a provider that name a region, an account or a version.
fn is_place(path: &[String]) -> bool {
    const PLACES: [&str; 8] = [
        "region",
        "location",
        "project",
        "resourceName",
        "apiVersion",
        "profile",
        "accountId",
        "instanceUrl",
    ];
    matches!(parts(path)[..], ["provider", _, "options", name] if PLACES.contains(&name))
}

/// The keys with the address of a provider.
fn is_address(path: &[String]) -> bool {
    matches!(parts(path)[..], ["provider", _, "options", "baseURL"] | ["provider", _, "api"])
}

fn parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Whether an address has no place for a password.
fn is_plain_address(value: &str) -> bool {
    (value.starts_with("https://") || value.starts_with("http://")) && !value.contains(['@', '?', '#'])
}

/// Whether a value is a switch, a small number, a common word or an existing path, and no secret.
fn is_setting(name: &str, value: &str) -> bool {
    const MAX_DIGITS: usize = 5;
    let is_number = value.len() <= MAX_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = value.len() <= MAX_WORD_BYTES
        && value.bytes().all(|byte| byte.is_ascii_lowercase())
        && !env::names_credential(name);
    // An unset variable has a secret in another environment.
    !value.is_empty()
        && (is_number
            || value.eq_ignore_ascii_case("true")
            || value.eq_ignore_ascii_case("false")
            || is_word
            || (value.starts_with('/') && Path::new(value).exists()))
}

/// The secrets of a configuration. Its `Debug` text contains no values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The variables with a secret, and the keys of the user's configuration that use them.
    variables: BTreeMap<String, BTreeSet<String>>,
    /// Texts with inserted values, and what the owner and others see instead.
    texts: BTreeMap<String, [String; 2]>,
    /// Inserted values, which are hidden in every text.
    values: BTreeMap<String, Exposure>,
}

impl Secrets {
    /// The variables that the user's configuration uses as secrets.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// A key of the user's configuration that uses a variable as a secret.
    #[must_use]
    pub fn key_of(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable)?.first().map(String::as_str)
    }

    /// Whether a key that begins with `prefix` uses a variable.
    #[must_use]
    pub fn uses(&self, variable: &str, prefix: &str) -> bool {
        self.variables.get(variable).is_some_and(|keys| keys.iter().any(|key| key.starts_with(prefix)))
    }

    /// The inserted secrets that no log may contain.
    pub fn inserted(&self) -> impl Iterator<Item = &str> {
        let secret = self.values.iter().filter(|(_, exposure)| **exposure == Exposure::Nobody);
        secret.map(|(value, _)| value.as_str())
    }

    /// Returns a text with the inserted values removed that an audience must not see, or `None` if the text has no such value.
    #[must_use]
    pub fn masked(&self, text: &str, audience: Audience) -> Option<String> {
        if let Some(masked) = self.texts.get(text) {
            let masked = &masked[index(audience)];
            if masked != text {
                return Some(masked.clone());
            }
        }
        let is_hidden =
            |(value, exposure): &(&String, &Exposure)| !exposure.covers(audience) && text.contains(*value);
        let mut hidden: Vec<&String> = self.values.iter().filter(is_hidden).map(|(value, _)| value).collect();
        // A value may contain another one.
        hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
        (!hidden.is_empty())
            .then(|| hidden.into_iter().fold(text.to_owned(), |text, value| text.replace(value, HIDDEN)))
    }

    /// Records that a key uses a variable as a secret.
    pub(crate) fn add_variable(&mut self, variable: &str, key: &str) {
        if !env::is_ordinary(variable) {
            self.variables.entry(variable.to_owned()).or_default().insert(key.to_owned());
        }
    }

    /// Records an inserted value.
    pub(crate) fn add_value(&mut self, value: &str, exposure: Exposure) {
        if exposure != Exposure::Everybody && value.len() >= MIN_PART_BYTES {
            let known = self.values.entry(value.to_owned()).or_insert(exposure);
            *known = exposure.min(*known);
        }
    }

    /// Records a text with inserted values.
    pub(crate) fn add_text(&mut self, text: ExpandedText) {
        let ExpandedText { text, masked } = text;
        if masked.iter().all(|masked| *masked == text) {
            return;
        }
        match self.texts.get_mut(&text) {
            Some(known) => {
                for (known, masked) in known.iter_mut().zip(masked).filter(|(known, _)| **known == text) {
                    *known = masked;
                }
            }
            None => drop(self.texts.insert(text, masked)),
        }
    }

    /// Adds the secrets of another document of the user.
    pub(crate) fn add(&mut self, mut other: Self) {
        for (variable, keys) in std::mem::take(&mut other.variables) {
            self.variables.entry(variable).or_default().extend(keys);
        }
        self.add_inserted(other);
    }

    /// Adds what another document inserts. A repository's document does not decide which variables are secrets.
    pub(crate) fn add_inserted(&mut self, other: Self) {
        other.values.iter().for_each(|(value, exposure)| self.add_value(value, *exposure));
        for (text, masked) in other.texts {
            self.add_text(ExpandedText { text, masked });
        }
    }

    /// Records the variables that a document of the user names as those with the keys of providers.
    pub(crate) fn add_provider_variables(&mut self, document: &Map) {
        let providers = document.get("provider").and_then(serde_json::Value::as_object);
        for (id, provider) in providers.into_iter().flatten() {
            for name in provider["env"].as_array().into_iter().flatten().filter_map(|name| name.as_str()) {
                self.add_variable(name, &format!("provider.{id}.env"));
            }
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.variables).finish()
    }
}

fn index(audience: Audience) -> usize {
    match audience {
        Audience::Owner => 0,
        Audience::Others => 1,
    }
}

/// A text while values are inserted into it, and what each audience sees of it.
#[derive(Debug, Default)]
pub(crate) struct ExpandedText {
    pub(crate) text: String,
    masked: [String; 2],
}

impl ExpandedText {
    /// Appends text of the document itself.
    pub(crate) fn push(&mut self, text: &str) {
        self.insert(text, Exposure::Everybody);
    }

    /// Appends an inserted value.
    pub(crate) fn insert(&mut self, value: &str, exposure: Exposure) {
        self.text.push_str(value);
        for audience in [Audience::Owner, Audience::Others] {
            let is_shown = value.is_empty() || exposure.covers(audience);
            self.masked[index(audience)].push_str(if is_shown { value } else { HIDDEN });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, variable: &str, value: &str, expected: Exposure) {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        assert_eq!(Exposure::of_variable(variable, value, &path), expected, "{key} {variable}={value}");
    }

    #[test]
    fn a_variable_is_a_secret_unless_its_key_or_value_says_otherwise() {
        use Exposure::{Everybody, Nobody, Owner};
        check("provider.x.options.apiKey", "CORP", "s3cret-value", Nobody);
        check("provider.x.options.custom", "CORP", "s3cret-value", Nobody);
        check("mcp.x.environment.A", "CORP", "s3cret-value", Nobody);
        check("mcp.x.environment.A", "CORP", "", Nobody);
        check("store", "MY_DATABASE", "postgres://u:p@h/d", Nobody);
        check("mcp.x.command", "HOME", "/home/me", Everybody);
        check("mcp.x.environment.NODE_ENV", "NODE_ENV", "production", Everybody);
        check("mcp.x.environment.A", "MY_PASSWORD", "production", Nobody);
        check("mcp.x.environment.PORT", "PORT", "8080", Everybody);
        check("lsp.x.command", "SDK", "/", Everybody);
        check("lsp.x.command", "SDK", "/no/such/place", Nobody);
        check("model", "MODEL", "a/b-12345678", Everybody);
        check("agent.x.prompt", "WORDS", "Be brief, please", Owner);
        check("provider.x.options.region", "REGION", "eu-central-1", Owner);
        check("provider.x.options.baseURL", "URL", "https://llm.example/v1", Owner);
        check("provider.x.options.baseURL", "URL", "https://u:p@llm.example/v1", Nobody);
        check("provider.x.options.baseURL", "URL", "https://llm.example/v1?k=abc", Nobody);
    }

    #[test]
    fn inserted_values_are_hidden_where_they_stand_and_in_other_texts() {
        let mut secrets = Secrets::default();
        let mut text = ExpandedText::default();
        text.push("https://h/?k=");
        text.insert("ab", Exposure::Nobody);
        text.push("&n=");
        text.insert("long-enough", Exposure::Owner);
        secrets.add_text(text);
        secrets.add_value("ab", Exposure::Nobody);
        secrets.add_value("long-enough", Exposure::Owner);
        let check = |text: &str, audience, expected: Option<&str>| {
            assert_eq!(secrets.masked(text, audience).as_deref(), expected, "{text}");
        };
        check("https://h/?k=ab&n=long-enough", Audience::Owner, Some("https://h/?k=(hidden)&n=long-enough"));
        check("https://h/?k=ab&n=long-enough", Audience::Others, Some("https://h/?k=(hidden)&n=(hidden)"));
        check("about", Audience::Others, None);
        check("x long-enough y", Audience::Others, Some("x (hidden) y"));
        check("x long-enough y", Audience::Owner, None);
        assert!(!format!("{secrets:?}").contains("long-enough"));
    }
}
