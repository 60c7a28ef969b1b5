//! The lockfiles of package managers.

use std::collections::HashMap;

use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::Value;

use crate::registry::Registries;

/// The largest lockfile.
pub(crate) const MAX_LOCK_BYTES: u64 = 32 * 1024 * 1024;
/// The deepest nesting of bun's lockfile. The parser of npm's has a limit itself.
const MAX_DEPTH: usize = 64;
/// The digests that a package manager can check.
const DIGESTS: [&str; 4] = ["sha512-", "sha384-", "sha256-", "sha1-"];

/// The packages of a lockfile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Locked(Vec<Entry>);

/// A package of a lockfile.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: String,
    version: String,
    /// The directory, below the root.
    at: String,
    /// The address of the archive, if the lockfile contains it.
    from: Option<String>,
    integrity: Option<String>,
    /// Part of the archive of another package.
    is_bundled: bool,
    /// A link to another directory.
    is_link: bool,
}

impl Locked {
    /// Reads npm's `package-lock.json`.
    pub(crate) fn of_npm(text: &str) -> Result<Self, String> {
        let lock: Value =
            serde_json::from_str(text).map_err(|error| format!("the lockfile is broken: {error}"))?;
        let packages = lock["packages"].as_object().ok_or("the lockfile contains no packages")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let entry = |(at, entry): (&String, &Value)| Entry {
            // An alias has the name of its package.
            name: text(&entry["name"]).unwrap_or_else(|| name_of(at).to_owned()),
            version: text(&entry["version"]).unwrap_or_default(),
            at: at.clone(),
            from: text(&entry["resolved"]),
            integrity: text(&entry["integrity"]),
            is_bundled: entry["inBundle"] == true,
            is_link: entry["link"] == true,
        };
        Ok(Self(packages.iter().filter(|(at, _)| !at.is_empty()).map(entry).collect()))
    }

    /// Reads bun's `bun.lock`: an object of lists with the package, the address (empty for the registry), its data and
    /// the digest.
    pub(crate) fn of_bun(text: &str) -> Result<Self, String> {
        if depth(text) > MAX_DEPTH {
            return Err("the lockfile is nested too deeply".to_owned());
        }
        let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
        let parsed = parsed.map_err(|error| format!("the lockfile is broken: {error}"))?;
        let lock: Value = parsed.value.map(Value::from).unwrap_or_default();
        let packages = lock["packages"].as_object().ok_or("the lockfile contains no packages")?;
        let entries = packages.iter().map(|(at, entry)| {
            let entry = entry.as_array().map(Vec::as_slice).unwrap_or_default();
            let text = |at: usize| entry.get(at).and_then(Value::as_str).unwrap_or_default();
            let (name, version) =
                text(0).rsplit_once('@').filter(|(name, _)| !name.is_empty()).unwrap_or_default();
            let is_registry = entry.len() == 4 && semver::Version::parse(version).is_ok();
            Entry {
                name: name.to_owned(),
                version: version.to_owned(),
                at: format!("node_modules/{at}"),
                from: Some(text(1).to_owned()).filter(|from| !from.is_empty()),
                integrity: is_registry.then(|| text(3).to_owned()),
                is_bundled: entry.get(2).is_some_and(|data| data["bundled"] == true),
                is_link: !is_registry,
            }
        });
        Ok(Self(entries.collect()))
    }

    /// Returns the version of the package in `node_modules` itself.
    pub(crate) fn version(&self, name: &str) -> Option<&str> {
        let at = format!("node_modules/{name}");
        self.0.iter().find(|entry| entry.at == at).map(|entry| entry.version.as_str())
    }

    /// Checks that every package is an archive of a known registry with a digest.
    pub(crate) fn check(&self, registries: &Registries) -> Result<(), String> {
        for entry in &self.0 {
            let Entry { name, version, .. } = entry;
            if entry.at.split('/').any(|part| part == "..") || !entry.at.starts_with("node_modules/") {
                return Err(format!("the lockfile places `{name}` outside of `node_modules`"));
            }
            if entry.is_link {
                return Err(format!("`{name}` comes from a directory or from git, not from a registry"));
            }
            if entry.is_bundled {
                continue;
            }
            if let Some(from) = &entry.from
                && !registries.has(from)
            {
                return Err(format!(
                    "`{name}@{version}` would be downloaded from `{from}`, which is not a registry of your `.npmrc`"
                ));
            }
            let integrity = entry.integrity.as_deref().unwrap_or_default();
            if !integrity
                .split_whitespace()
                .any(|digest| DIGESTS.iter().any(|known| digest.starts_with(known)))
            {
                return Err(format!("the registry has no digest for `{name}@{version}`"));
            }
        }
        Ok(())
    }

    /// Checks that no package has another digest than in a lockfile of before.
    pub(crate) fn compare(&self, before: &Self) -> Result<(), String> {
        let digest = |entry: &Entry| entry.integrity.clone().filter(|_| !entry.is_bundled);
        let known: HashMap<(&str, &str), String> = before
            .0
            .iter()
            .filter_map(|entry| Some(((entry.name.as_str(), entry.version.as_str()), digest(entry)?)))
            .collect();
        for entry in &self.0 {
            let before = known.get(&(entry.name.as_str(), entry.version.as_str()));
            if let (Some(before), Some(now)) = (before, digest(entry))
                && is_changed(before, &now)
            {
                return Err(format!(
                    "the content of `{}@{}` has changed since it was installed before; its digest was `{before}` and \
                     is now `{now}`",
                    entry.name, entry.version
                ));
            }
        }
        Ok(())
    }
}

/// Whether two lists of digests contradict each other: a common algorithm, but no common digest.
fn is_changed(before: &str, now: &str) -> bool {
    let algorithm = |digest: &str| digest.split_once('-').map(|(algorithm, _)| algorithm.to_owned());
    let before: Vec<&str> = before.split_whitespace().collect();
    let mut common =
        now.split_whitespace().filter(|now| before.iter().any(|before| algorithm(before) == algorithm(now)));
    common.any(|now| !before.contains(&now))
}

/// The deepest nesting of brackets, at least. Those in texts count too.
fn depth(text: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => now += 1,
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

/// The name of the package in a directory.
fn name_of(at: &str) -> &str {
    at.rsplit_once("node_modules/").map_or(at, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn registries() -> Registries {
        Registries::read("", None, &|_| None)
    }

    #[track_caller]
    fn check(entry: Value, expected: &str) {
        let lock = json!({"packages": {"": {}, "node_modules/a": entry}});
        let found = Locked::of_npm(&lock.to_string()).unwrap().check(&registries());
        let found = found.err().unwrap_or_default();
        assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{found}");
    }

    #[test]
    fn packages_are_archives_of_a_registry_with_a_digest() {
        let from = "https://registry.npmjs.org/a/-/a-1.0.0.tgz";
        check(json!({"version": "1.0.0", "resolved": from, "integrity": "sha512-x"}), "");
        check(json!({"version": "1.0.0", "inBundle": true}), "");
        check(json!({"version": "1.0.0", "resolved": from}), "no digest");
        check(json!({"version": "1.0.0", "resolved": from, "integrity": "md5-x"}), "no digest");
        check(
            json!({"version": "1.0.0", "resolved": "https://evil.example.com/a.tgz", "integrity": "sha512-x"}),
            "evil",
        );
        check(json!({"version": "1.0.0", "resolved": "git+ssh://git@host/a.git#1"}), "git+ssh");
        check(json!({"version": "1.0.0", "resolved": "file:../../etc"}), "file:");
        check(json!({"resolved": "../..", "link": true}), "directory");
    }

    #[test]
    fn a_changed_digest_is_found() {
        let lock = |digest: &str| {
            let lock = json!({"packages": {"node_modules/b/node_modules/@s/a": {"version": "1.0.0", "integrity": digest}}});
            Locked::of_npm(&lock.to_string()).unwrap()
        };
        for (before, now, expected) in [
            ("sha512-x", "sha512-x", true),
            ("sha512-x", "sha512-y", false),
            ("sha512-x sha1-z", "sha512-x", true),
            ("sha1-z", "sha512-x", true),
            ("sha1-z sha512-x", "sha1-z sha512-y", false),
        ] {
            assert_eq!(lock(now).compare(&lock(before)).is_ok(), expected, "{before} {now}");
        }
        assert!(lock("sha512-y").compare(&lock("sha512-x")).unwrap_err().contains("`@s/a@1.0.0`"));
    }

    #[test]
    fn the_lockfile_of_bun_is_read() {
        let text = r#"{"lockfileVersion": 1, "packages": {
            "@s/a": ["@s/a@1.0.0", "", {"bin": "x"}, "sha512-x"],
            "b": ["b@2.0.0", "https://evil.example.com/b.tgz", {}, "sha512-y"],
            "c": ["c@git+ssh://git@host/c.git#abc", {}, "abc"],
        }}"#;
        let locked = Locked::of_bun(text).unwrap();
        assert_eq!(locked.version("@s/a"), Some("1.0.0"));
        assert!(locked.check(&registries()).unwrap_err().contains("evil"));
        let only = |at: usize| Locked(vec![locked.0[at].clone()]).check(&registries());
        assert!(only(0).is_ok() && only(2).unwrap_err().contains("git"));
    }
}
