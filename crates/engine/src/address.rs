//! The address of a file in a prompt: the one parser for it. What checks an address and what reads the file use the same
//! value, so no spelling means one file to the check and another to the reader.

use std::path::{Path, PathBuf};

use url::Url;

/// What the address of a file in a prompt names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A file or directory of this machine.
    File(FileAddress),
    /// Content that is part of the address: the text after `data:`.
    Data(String),
    /// Anything else, which this program does not read.
    Elsewhere,
}

/// A file or directory, and the lines that the address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAddress {
    path: PathBuf,
    start: Option<u64>,
    end: Option<u64>,
}

impl Address {
    /// Parses an address as browsers and Node do: `.` and `..` are resolved, percent-encoding is decoded, and neither a
    /// query nor a fragment is part of the path.
    ///
    /// # Errors
    ///
    /// Fails if it is a `file:` address that names no file of this machine.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(data) = text.strip_prefix("data:") {
            return Ok(Self::Data(data.to_owned()));
        }
        let Ok(url) = Url::parse(text) else { return unparsed(text) };
        match url.scheme() {
            "file" => FileAddress::of(&url).map(Self::File).ok_or_else(|| invalid(text)),
            // A spelling of the scheme that clients do not use.
            "data" => Err("write `data:` at the start of an address in lower case".to_owned()),
            _ => Ok(Self::Elsewhere),
        }
    }
}

impl FileAddress {
    fn of(url: &Url) -> Option<Self> {
        let path = url.to_file_path().ok()?;
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return None;
        }
        let number = |name: &str| {
            let mut pairs = url.query()?.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok())
        };
        Some(Self { start: number("start"), end: number("end"), path })
    }

    /// The absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first of the named lines and their number, if the address names lines.
    pub(crate) fn lines(&self) -> Option<(u64, Option<u64>)> {
        let start = self.start?;
        let count = self.end.filter(|end| *end >= start).map(|end| (end - start).saturating_add(1));
        Some((start, count))
    }
}

/// The value of a text that is no address. One that could be meant as a file is refused rather than ignored.
fn unparsed(text: &str) -> Result<Address, String> {
    let scheme = text.split(':').next().unwrap_or_default();
    let letters = scheme.chars().filter(|char| !char.is_control() && !char.is_whitespace());
    if text.contains(':') && letters.collect::<String>().eq_ignore_ascii_case("file") {
        return Err(invalid(text));
    }
    Ok(Address::Elsewhere)
}

fn invalid(text: &str) -> String {
    let shown: String = text.chars().filter(|char| !char.is_control()).take(200).collect();
    format!("`{shown}` names no file of this machine: write `file:///` and the absolute path")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn file(text: &str) -> String {
        match Address::parse(text) {
            Ok(Address::File(file)) => file.path().display().to_string(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_spelling_of_a_path_is_one_path() {
        for (text, expected) in [
            ("file:///etc/passwd", "/etc/passwd"),
            ("file:/etc/passwd", "/etc/passwd"),
            ("FILE://localhost/etc/passwd", "/etc/passwd"),
            (" file:///etc/passwd", "/etc/passwd"),
            ("fi\tle:///etc/passwd", "/etc/passwd"),
            ("file:///etc/%70asswd?start=1#x", "/etc/passwd"),
            ("file:///work/a#/../../etc/passwd", "/work/a"),
            ("file:///work/a?/../../etc/passwd", "/work/a"),
            ("file:///work/../etc/passwd", "/etc/passwd"),
            ("file:///work/%2e%2e/etc/passwd", "/etc/passwd"),
            ("file:///work\\..\\etc", "/etc"),
            ("file:///a%20b/c%C3%A4.txt", "/a b/c\u{e4}.txt"),
            ("file:///a%23b", "/a#b"),
            ("file:///a/b/", "/a/b/"),
        ] {
            assert_eq!(file(text), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_named_in_the_query() {
        let lines = |text| match Address::parse(text) {
            Ok(Address::File(file)) => file.lines(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(lines("file:///a?start=2&end=4"), Some((2, Some(3))));
        assert_eq!(lines("file:///a?start=2&end=1"), Some((2, None)));
        assert_eq!(lines("file:///a?end=1"), None);
        assert_eq!(lines("file:///a?start=18446744073709551615&end=x"), Some((u64::MAX, None)));
    }

    #[test]
    fn other_addresses_are_not_files() {
        for (text, expected) in [
            ("data:text/plain,file:///etc", Some(Address::Data("text/plain,file:///etc".to_owned()))),
            ("https://example/etc", Some(Address::Elsewhere)),
            ("/etc/passwd", Some(Address::Elsewhere)),
            ("", Some(Address::Elsewhere)),
            ("file://host/etc/passwd", None),
            ("file:///a%00b", None),
            ("file://[", None),
            ("DATA:,x", None),
        ] {
            assert_eq!(Address::parse(text).ok(), expected, "{text}");
        }
    }

    proptest! {
        /// Whatever the spelling, a path is absolute and has no part that could lead up from another.
        #[test]
        fn a_path_is_absolute_and_has_only_one_meaning(
            text in prop_oneof![
                "(file|FILE|fIle|fi\tle)(:|:/|://|:///|://localhost/|://h/)([a-c/#?%\\\\ .]|%2e|%2F|%23|%3f|%5c|\\.\\.|\u{e4}|\u{2024}){0,24}",
                "\\PC{0,24}",
            ],
        ) {
            if let Ok(Address::File(file)) = Address::parse(&text) {
                prop_assert!(file.path().is_absolute());
                let again = Url::from_file_path(file.path()).map(|url| Address::parse(url.as_str()));
                let Ok(Ok(Address::File(again))) = again else { panic!("{text}: {again:?}") };
                let trimmed = |path: &Path| path.components().collect::<PathBuf>();
                prop_assert_eq!(trimmed(again.path()), trimmed(&normal(file.path())));
            }
        }
    }

    /// An encoded slash can leave `..` in a path, which `Url::from_file_path` resolves.
    fn normal(path: &Path) -> PathBuf {
        codewright_workspace::normalize(path)
    }
}
