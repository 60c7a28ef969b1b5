//! The source of a package, as a configuration names it.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use codewright_workspace::normalize;
use url::Url;

use crate::Error;

/// The version of a package without one.
const LATEST: &str = "latest";
/// The longest name, as registries limit it.
const MAX_NAME_BYTES: usize = 214;
/// The longest version, range or tag.
const MAX_WANTED_BYTES: usize = 100;
/// The longest path.
const MAX_PATH_BYTES: usize = 4096;

/// Where a package comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A registry.
    Registry(Package),
    /// A file or directory of this machine.
    Path(PathBuf),
}

/// A package of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The name, with its scope.
    pub name: String,
    /// A version, a range or a tag.
    pub wanted: String,
}

impl Source {
    /// Reads `name`, `name@version`, `@scope/name@range`, `name@tag`, `file://…`, `./path`, `../path`, `~/path` or
    /// `/path`. Relative paths start at `base`.
    ///
    /// # Errors
    ///
    /// Fails with a reason if the text is none of these.
    pub fn parse(text: &str, base: &Path, home: &Path) -> Result<Self, Error> {
        let refuse = |reason: &str| Err(Error::spec(text, reason));
        if text.chars().any(char::is_control) {
            return refuse("it contains control characters");
        }
        if text.starts_with("file:") {
            // Without the slashes, the path could be meant as relative.
            let url = Url::parse(text).ok().filter(|_| text.starts_with("file:///"));
            let Some(path) = url.and_then(|url| url.to_file_path().ok()) else {
                return refuse("it is not a `file:///` URL of this machine");
            };
            return Self::path(text, &path);
        }
        if let Some(below) = text.strip_prefix("~/") {
            return Self::path(text, &home.join(below));
        }
        let first = Path::new(text).components().next();
        if matches!(first, Some(Component::RootDir | Component::CurDir | Component::ParentDir)) {
            return Self::path(text, &base.join(text));
        }
        Package::parse(text).map(Self::Registry)
    }

    fn path(text: &str, path: &Path) -> Result<Self, Error> {
        let path = normalize(path);
        if text.len() > MAX_PATH_BYTES || path.parent().is_none() {
            return Err(Error::spec(text, "it is not the path of a file or directory"));
        }
        Ok(Self::Path(path))
    }
}

impl Package {
    /// Reads `name` or `name@version`.
    ///
    /// # Errors
    ///
    /// Fails with a reason if the name or the version is invalid, and for packages that do not come from a registry.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: &str| Err(Error::spec(text, reason));
        let text = text.strip_prefix("npm:").unwrap_or(text);
        // The first character can be the mark of a scope.
        let at = text.char_indices().skip(1).find(|(_, character)| *character == '@').map(|(at, _)| at);
        let (name, wanted) = match at {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, LATEST),
        };
        if text.contains("://") || text.starts_with("git@") || wanted.contains([':', '/', '\\']) {
            return refuse("packages come from a registry or from a path, not from git or another address");
        }
        let (scope, own) = match name.strip_prefix('@').and_then(|name| name.split_once('/')) {
            Some((scope, own)) => (Some(scope), own),
            None if name.contains('/') => {
                return refuse(
                    "packages come from a registry or from a path; a path begins with `./` or `/`",
                );
            }
            None => (None, name),
        };
        if name.len() > MAX_NAME_BYTES || !scope.into_iter().chain([own]).all(is_name) {
            return refuse("it is not the name of a package");
        }
        let is_accepted =
            |character: char| character.is_ascii_alphanumeric() || " .^~<>=|*+-_".contains(character);
        let is_wanted =
            !wanted.is_empty() && wanted.len() <= MAX_WANTED_BYTES && !wanted.starts_with(['-', '.', ' ']);
        if !is_wanted || !wanted.chars().all(is_accepted) {
            return refuse("the text after `@` is not a version, a range or a tag");
        }
        Ok(Self { name: name.to_owned(), wanted: wanted.to_owned() })
    }

    /// Returns the version if exactly one is wanted.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        let wanted = self.wanted.strip_prefix(['v', '=']).unwrap_or(&self.wanted);
        semver::Version::parse(wanted).is_ok().then_some(wanted)
    }

    /// The name of a file for this package that no other package has.
    pub(crate) fn key(&self) -> String {
        escaped(&format!("{}@{}", self.name, self.wanted))
    }
}

/// Whether a text is a scope or the name in it.
fn is_name(text: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    let is_reserved = text.eq_ignore_ascii_case("node_modules") || text.eq_ignore_ascii_case("favicon.ico");
    !text.is_empty()
        && !text.starts_with(['.', '_', '-', '~'])
        && text.bytes().all(is_accepted)
        && !is_reserved
}

/// A text as the name of a file.
fn escaped(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'@' => {
                name.push(char::from(byte));
            }
            // Writing to a text cannot fail.
            other => drop(write!(name, "%{other:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str)>) {
        let found = match Source::parse(text, Path::new("/base"), Path::new("/home/ann")) {
            Ok(Source::Registry(package)) => Some((package.name, package.wanted)),
            Ok(Source::Path(path)) => Some((String::new(), path.display().to_string())),
            Err(_) => None,
        };
        let expected = expected.map(|(name, wanted)| (name.to_owned(), wanted.to_owned()));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn sources_are_packages_or_paths() {
        for (text, expected) in [
            ("tiny", Some(("tiny", "latest"))),
            ("tiny@1.2.3", Some(("tiny", "1.2.3"))),
            ("npm:tiny@1.2.3", Some(("tiny", "1.2.3"))),
            ("tiny@next", Some(("tiny", "next"))),
            ("tiny@^1.2", Some(("tiny", "^1.2"))),
            ("tiny@>=1 <2 || 3.x", Some(("tiny", ">=1 <2 || 3.x"))),
            ("@scope/tiny", Some(("@scope/tiny", "latest"))),
            ("@scope/tiny@1.0.0-rc.1+b", Some(("@scope/tiny", "1.0.0-rc.1+b"))),
            ("./x.js", Some(("", "/base/x.js"))),
            ("../x", Some(("", "/x"))),
            ("/a/../b.ts", Some(("", "/b.ts"))),
            ("~/x.ts", Some(("", "/home/ann/x.ts"))),
            ("file:///a/b%20c.ts", Some(("", "/a/b c.ts"))),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn hostile_sources_are_refused() {
        for text in [
            "",
            "@",
            "@/x",
            "@scope",
            "@scope/",
            "@scope/..",
            "..",
            "/",
            "a/b",
            "a/../b",
            "@a/b/c",
            "a\\b",
            "tiny@",
            "tiny@1/2",
            "tiny@../x",
            "tiny@file:../x",
            "tiny@npm:other@1",
            "tiny@-g",
            "tiny@ 1",
            "tiny@1\n2",
            "tiny\0",
            "-g",
            "--prefix=/",
            "_x",
            ".x",
            "node_modules",
            "git+ssh://git@host/x",
            "git@host:x/y",
            "github:a/b",
            "https://host/x.tgz",
            "http://host/x",
            "tiny@https://host/x.tgz",
            "file://host/x",
            "file:relative",
            "tiny@$(id)",
            "tiny@`id`",
            "tiny@1;id",
            "é",
        ] {
            check(text, None);
        }
        check(&"a".repeat(215), None);
        check(&format!("a@{}", "1".repeat(101)), None);
    }

    #[test]
    fn only_a_whole_version_is_exact() {
        for (wanted, expected) in [
            ("1.2.3", Some("1.2.3")),
            ("v1.2.3", Some("1.2.3")),
            ("1.2", None),
            ("^1.2.3", None),
            ("latest", None),
        ] {
            let package = Package { name: "a".to_owned(), wanted: wanted.to_owned() };
            assert_eq!(package.version(), expected);
        }
    }

    #[test]
    fn keys_are_single_names() {
        let key = Package::parse("@a/b@>=1 <2").unwrap().key();
        assert_eq!(key, "@a%2fb@%3e%3d1%20%3c2");
    }
}
