//! Spellings of a name that a person takes for the same: composed and decomposed letters, and compatibility characters.
//!
//! macOS writes a narrow no-break space (U+202F) into the names of screenshots, and older volumes store decomposed letters.
//! A person, and a model, types an ordinary space and composed letters.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// Maximum entries of a directory that are compared with a missing name.
const MAX_ENTRIES: usize = 10_000;
/// Maximum existing spellings of one path.
const MAX_SPELLINGS: usize = 64;
/// Every space that a person types as an ordinary one.
const SPACES: [char; 16] = [
    ' ', '\u{a0}', '\u{2000}', '\u{2001}', '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}',
    '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}', '\u{202f}', '\u{205f}', '\u{3000}',
];

/// Which spellings count as the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// Composed and decomposed letters, which no program shows differently.
    Canonical,
    /// Also compatibility characters, such as other spaces and full-width letters.
    Compatible,
}

impl Likeness {
    fn form(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Canonical => composed(name),
            Self::Compatible => plain(name),
        }
    }
}

/// Returns a text with composed letters (NFC).
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Returns a text with ordinary spaces and without compatibility characters (NFKC).
///
/// Characters whose plain form would separate paths or be a wildcard stay, because the plain text would mean something else.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        let before = out.len();
        out.extend(std::iter::once(char).nfkc());
        let is_special =
            |c: char| c.is_control() || matches!(c, '/' | '\\' | '*' | '?' | '[' | ']' | '{' | '}');
        if out[before..].contains(is_special) {
            out.truncate(before);
            out.push(char);
        }
    }
    Cow::Owned(out.nfc().collect())
}

/// Returns a glob that also matches the other spellings of its names.
///
/// For example, a space matches every kind of space, and a composed letter also matches a decomposed one.
#[must_use]
pub fn alike_glob(pattern: &str) -> Cow<'_, str> {
    if pattern.is_ascii() && !pattern.contains(' ') {
        return Cow::Borrowed(pattern);
    }
    let pattern = composed(pattern);
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut chars = pattern.char_indices();
    let mut is_class = false;
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                out.push(char);
                out.extend(chars.next().map(|(_, next)| next));
            }
            '[' if !is_class && pattern[at + 1..].contains(']') => {
                is_class = true;
                out.push(char);
            }
            ']' if is_class => {
                is_class = false;
                out.push(char);
            }
            char if char.is_ascii() && char != ' ' => out.push(char),
            // Globs are matched byte by byte, so a class has no other spellings.
            char if is_class => out.push(char),
            char if SPACES.contains(&char) => push_alternatives(&mut out, &SPACES.map(String::from)),
            char => push_spellings(&mut out, char),
        }
    }
    Cow::Owned(out)
}

/// Appends a character, or the alternatives of its spellings.
fn push_spellings(out: &mut String, char: char) {
    let mut spellings = vec![char.to_string()];
    let decomposed: String = std::iter::once(char).nfd().collect();
    let mut buffer = [0; 4];
    for other in [decomposed, plain(char.encode_utf8(&mut buffer)).into_owned()] {
        if !spellings.contains(&other) && !other.contains(',') {
            spellings.push(other);
        }
    }
    push_alternatives(out, &spellings);
}

fn push_alternatives(out: &mut String, spellings: &[String]) {
    match spellings {
        [only] => out.push_str(only),
        several => out.extend(["{", &several.join(","), "}"]),
    }
}

/// Returns the one path that exists and is another spelling of an absolute path. The exact name of a component wins.
#[must_use]
pub fn existing(path: &Path, likeness: Likeness) -> Option<PathBuf> {
    let mut found = PathBuf::from("/");
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        let exact = found.join(name);
        if exact.symlink_metadata().is_ok() {
            found = exact;
            continue;
        }
        let name = name.to_str()?;
        // A plain name has no other canonical spelling.
        if likeness == Likeness::Canonical && name.is_ascii() {
            return None;
        }
        let mut alike = alike(&found, name, likeness);
        found = alike.pop().filter(|_| alike.is_empty())?;
    }
    Some(found)
}

/// Returns every existing spelling of a path below `base`, which is not changed itself, including the exact one.
#[must_use]
pub fn spellings(base: &Path, below: &Path) -> Vec<PathBuf> {
    let mut found = vec![base.to_owned()];
    for component in below.components() {
        let Component::Normal(name) = component else { continue };
        let next = found.iter().flat_map(|at| match name.to_str() {
            Some(name) => alike(at, name, Likeness::Compatible),
            None => vec![at.join(name)],
        });
        found = next.take(MAX_SPELLINGS).collect();
    }
    found
}

/// Reports whether the plain or composed spelling of a path names another file.
#[must_use]
pub fn has_namesake(path: &Path) -> bool {
    let Some(text) = path.to_str().filter(|text| !text.is_ascii()) else { return false };
    let identity = |path: &Path| {
        let found = path.symlink_metadata().ok()?;
        Some((std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found)))
    };
    let own = identity(path);
    [composed(text), plain(text)].iter().any(|other| {
        let other = identity(Path::new(other.as_ref()));
        other.is_some() && other != own
    })
}

/// The entries of a directory that are spellings of a name.
fn alike(directory: &Path, name: &str, likeness: Likeness) -> Vec<PathBuf> {
    let wanted = likeness.form(name);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let entries = entries.take(MAX_ENTRIES).flatten();
    let is_alike =
        |found: &std::ffi::OsString| found.to_str().is_some_and(|found| likeness.form(found) == wanted);
    entries.map(|entry| entry.file_name()).filter(is_alike).map(|found| directory.join(found)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NARROW: &str = "Screenshot 2026-11-27 at 10.00.00\u{202f}AM.png";
    const ORDINARY: &str = "Screenshot 2026-11-27 at 10.00.00 AM.png";

    #[test]
    fn the_plain_form_is_what_a_person_types() {
        for (text, expected) in [
            (NARROW, ORDINARY),
            ("a\u{a0}b", "a b"),
            ("cafe\u{301}", "caf\u{e9}"),
            ("\u{ff52}\u{ff45}\u{ff41}\u{ff44}", "read"),
            ("\u{fb01}le", "file"),
            // These would separate paths or be wildcards.
            ("a\u{ff0f}b", "a\u{ff0f}b"),
            ("\u{ff0a}", "\u{ff0a}"),
            ("plain", "plain"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn a_glob_names_the_other_spellings() {
        for (pattern, expected) in [
            ("*.rs", "*.rs".to_owned()),
            ("a b", format!("a{{{}}}b", SPACES.map(String::from).join(","))),
            ("[a b]", "[a b]".to_owned()),
            ("a\\ b", "a\\ b".to_owned()),
            ("cafe\u{301}*", "caf{\u{e9},e\u{301}}*".to_owned()),
            ("\u{ff41}", "{\u{ff41},a}".to_owned()),
            ("\u{4e2d}[", "\u{4e2d}[".to_owned()),
        ] {
            assert_eq!(alike_glob(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn one_existing_spelling_is_found_and_the_exact_name_wins() {
        use Likeness::{Canonical, Compatible};
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        std::fs::create_dir(at("cafe\u{301}")).unwrap();
        for name in ["cafe\u{301}/menu", NARROW, "a\u{a0}b", "a\u{202f}b", "x\u{a0}y", "x y"] {
            std::fs::write(at(name), "").unwrap();
        }
        for (name, likeness, expected) in [
            ("caf\u{e9}/menu", Canonical, Some("cafe\u{301}/menu")),
            (ORDINARY, Compatible, Some(NARROW)),
            (ORDINARY, Canonical, None),
            ("a b", Compatible, None),
            ("x y", Compatible, Some("x y")),
            ("missing", Compatible, None),
        ] {
            assert_eq!(existing(&at(name), likeness), expected.map(at), "{name}");
        }
        assert_eq!(spellings(&root, Path::new("x y")).len(), 2);
        assert!(has_namesake(&at("x\u{a0}y")) && !has_namesake(&at("x y")) && !has_namesake(&at(NARROW)));
    }

    proptest! {
        /// The plain form is stable, and has no separator or wildcard that the text did not have.
        #[test]
        fn the_plain_form_adds_no_special_characters(text in "\\PC{0,12}") {
            let form = plain(&text).into_owned();
            prop_assert_eq!(plain(&form), form.as_str());
            for special in ['/', '\\', '*', '?', '[', ']', '{', '}'] {
                prop_assert_eq!(form.matches(special).count(), text.matches(special).count());
            }
        }
    }
}
