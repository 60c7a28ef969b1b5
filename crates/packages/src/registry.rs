//! The registries that the user has configured, and the settings that the package manager gets.

use std::collections::BTreeSet;

use url::Url;

/// The registry of users without one.
const DEFAULT: &str = "https://registry.npmjs.org/";
/// The largest settings that are read.
pub const MAX_SETTINGS_BYTES: usize = 64 * 1024;
/// The largest number of registries.
const MAX_REGISTRIES: usize = 50;
/// The settings that are passed on besides those of registries.
const KEPT: &[&str] = &["ca", "ca[]", "cafile", "strict-ssl", "before", "min-release-age"];

/// A host of a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// The name or address, as in a URL.
    pub name: String,
    /// The port.
    pub port: u16,
    /// Whether the user has configured it. Otherwise it is the default, the public registry.
    pub is_configured: bool,
}

/// The registries of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registries {
    /// Their hosts.
    pub hosts: BTreeSet<Host>,
    /// The settings for the package manager, which contain tokens.
    pub(crate) settings: String,
}

impl Registries {
    /// Reads the user's `.npmrc`. `registry` overrides its registry, and `variable` returns the variables that it names.
    ///
    /// Only settings of registries are used: their addresses, their credentials and certificates.
    #[must_use]
    pub fn read(text: &str, registry: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut found = Self { hosts: BTreeSet::new(), settings: String::new() };
        let mut public = None;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with([';', '#', '['])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), expanded(value.trim(), variable));
            if key.chars().chain(value.chars()).any(char::is_control) {
                continue;
            }
            if key == "registry" {
                public = Some(value);
            } else if key.starts_with('@') && key.ends_with(":registry") {
                found.add(&value, true);
                found.set(key, &value);
            } else if key.starts_with("//") || KEPT.contains(&key) {
                found.set(key, &value);
            }
        }
        let configured = registry.map(str::to_owned).or(public);
        let is_configured = configured.is_some();
        let url = configured.unwrap_or_else(|| DEFAULT.to_owned());
        found.add(&url, is_configured);
        found.set("registry", &url);
        found
    }

    fn add(&mut self, url: &str, is_configured: bool) {
        let url = url.trim_matches('"');
        let Some(url) = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https")) else {
            return;
        };
        if let (Some(name), Some(port)) = (url.host_str(), url.port_or_known_default())
            && self.hosts.len() < MAX_REGISTRIES
        {
            self.hosts.insert(Host { name: name.to_owned(), port, is_configured });
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.settings.push_str(&format!("{key}={value}\n"));
    }

    /// Whether a package may be downloaded from an address.
    pub(crate) fn has(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        let is_same = |host: &Host| {
            url.host_str() == Some(host.name.as_str()) && url.port_or_known_default() == Some(host.port)
        };
        matches!(url.scheme(), "http" | "https") && self.hosts.iter().any(is_same)
    }

    /// The credentials, which no message may contain.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let lines = self.settings.lines().filter_map(|line| line.split_once('='));
        let secret = |key: &str| {
            let key = key.to_ascii_lowercase();
            key.ends_with("_authtoken") || key.ends_with("_auth") || key.ends_with("_password")
        };
        lines
            .filter(move |(key, value)| secret(key) && value.len() >= 4)
            .map(|(_, value)| value.trim_matches('"'))
    }
}

/// Replaces `${NAME}` by the value of a variable.
fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        result.push_str(before);
        result.push_str(&variable(name.trim_end_matches('?')).unwrap_or_default());
        rest = behind;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &Registries) -> Vec<String> {
        found.hosts.iter().map(|host| format!("{}:{}", host.name, host.port)).collect()
    }

    #[test]
    fn only_settings_of_registries_are_used() {
        let text = "; mine\nregistry=https://npm.example.com/a/\n//npm.example.com/a/:_authToken = ${TOKEN}\n\
                    @own:registry=http://10.0.0.1:4873\nignore-scripts=false\nscript-shell=/bin/evil\nprefix=/\n\
                    node-options=--require /evil.js\n//10.0.0.1:4873/:_password=\"abcd\"\n";
        let token = |name: &str| (name == "TOKEN").then(|| "secret-1".to_owned());
        let found = Registries::read(text, None, &token);
        assert_eq!(names(&found), ["10.0.0.1:4873", "npm.example.com:443"]);
        assert_eq!(
            found.settings,
            "//npm.example.com/a/:_authToken=secret-1\n@own:registry=http://10.0.0.1:4873\n\
             //10.0.0.1:4873/:_password=\"abcd\"\nregistry=https://npm.example.com/a/\n"
        );
        assert_eq!(found.secrets().collect::<Vec<_>>(), ["secret-1", "abcd"]);
        assert!(
            found.has("https://npm.example.com/x/-/x.tgz") && !found.has("https://evil.example.com/x.tgz")
        );
        assert!(!found.has("http://npm.example.com/x.tgz") && !found.has("git+ssh://npm.example.com/x"));
    }

    #[test]
    fn the_public_registry_is_the_default() {
        let found = Registries::read("", None, &|_| None);
        assert_eq!(names(&found), ["registry.npmjs.org:443"]);
        assert!(found.hosts.iter().all(|host| !host.is_configured));
        let named = Registries::read("registry=https://registry.npmjs.org/", None, &|_| None);
        assert_eq!(names(&named), ["registry.npmjs.org:443"]);
        assert!(
            named.hosts.iter().all(|host| host.is_configured),
            "a mirror of the user's network may have this name"
        );
        let found = Registries::read("", Some("http://localhost:4873"), &|_| None);
        assert_eq!(names(&found), ["localhost:4873"]);
        assert!(found.hosts.iter().all(|host| host.is_configured));
    }

    #[test]
    fn a_variable_cannot_add_a_setting() {
        let found =
            Registries::read("//a/:_authToken=${T}", None, &|_| Some("x\nregistry=http://evil".to_owned()));
        assert_eq!(found.settings, "registry=https://registry.npmjs.org/\n");
    }
}
