//! The settings of a repository that git may use.
//!
//! The list names allowed settings, so one that a later git introduces is not used. None of them names a
//! program, a file or an address. Two settings of the user name files: the lists of attributes and of ignored
//! files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The allowed values of a setting.
enum Values {
    Bool,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A bool or one of these words.
    BoolOr(&'static [&'static str]),
}

/// The allowed settings: the section, the key, and the values.
const PASSED: [(&str, &str, Values); 11] = [
    ("core", "autocrlf", Values::BoolOr(&["input"])),
    ("core", "checkstat", Values::Words(&["default", "minimal"])),
    ("core", "eol", Values::Words(&["lf", "crlf", "native"])),
    ("core", "filemode", Values::Bool),
    ("core", "ignorecase", Values::Bool),
    ("core", "precomposeunicode", Values::Bool),
    ("core", "sparsecheckout", Values::Bool),
    ("core", "sparsecheckoutcone", Values::Bool),
    ("core", "symlinks", Values::Bool),
    ("core", "trustctime", Values::Bool),
    ("diff", "algorithm", Values::Words(&["default", "histogram", "minimal", "myers", "patience"])),
];
/// The formats of a repository that git needs to read it.
const FORMATS: [(&str, &[&str]); 2] =
    [("objectformat", &["sha1", "sha256"]), ("refstorage", &["files", "reftable"])];

/// The settings that git uses instead of a repository's own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Allowed {
    values: Vec<(&'static str, &'static str, String)>,
    formats: Vec<(&'static str, String)>,
    /// The user's list of attributes.
    pub(super) attributes: Option<PathBuf>,
    /// The user's list of ignored files.
    pub(super) excludes: Option<PathBuf>,
    /// Directories of other users that the user has declared safe.
    safe: Vec<String>,
}

impl Allowed {
    /// Parses the output of `git config --list --show-scope -z`. Later values replace earlier ones.
    pub(super) fn read(listed: &[u8], home: &Path) -> Self {
        let mut allowed = Self::default();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let Ok(entry) = std::str::from_utf8(entry) else { continue };
            // A key without a value is true.
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            let Some((section, key)) = key.split_once('.') else { continue };
            allowed.take(section, key, value);
            if matches!(scope, b"system" | b"global") {
                allowed.take_from_user(section, key, value, home);
            }
        }
        allowed
    }

    fn take(&mut self, section: &str, key: &str, value: &str) {
        if section == "extensions"
            && let Some((key, words)) = FORMATS.iter().find(|(name, _)| *name == key)
            && words.contains(&value)
        {
            self.formats.retain(|(other, _)| other != key);
            self.formats.push((key, value.to_owned()));
        }
        let passed = PASSED.iter().find(|(of, name, _)| *of == section && *name == key);
        let Some((section, key, values)) = passed else { return };
        let value = value.to_ascii_lowercase();
        if values.allow(&value) {
            self.values.retain(|(of, name, _)| (of, name) != (section, key));
            self.values.push((section, key, value));
        }
    }

    fn take_from_user(&mut self, section: &str, key: &str, value: &str, home: &Path) {
        let file = || {
            let path = value.strip_prefix("~/").map_or_else(|| PathBuf::from(value), |rest| home.join(rest));
            path.is_absolute().then_some(path)
        };
        match (section, key) {
            ("core", "attributesfile") => self.attributes = file(),
            ("core", "excludesfile") => self.excludes = file(),
            // An empty value removes the ones before it.
            ("safe", "directory") if value.is_empty() => self.safe.clear(),
            ("safe", "directory") => self.safe.push(value.to_owned()),
            _ => {}
        }
    }

    /// Whether the user has declared a directory of another user safe.
    pub(super) fn is_safe(&self, directory: &Path) -> bool {
        self.safe.iter().any(|safe| match safe.strip_suffix("/*") {
            Some(above) => directory.parent().is_some_and(|parent| parent.starts_with(above)),
            None => safe == "*" || Path::new(safe) == directory,
        })
    }

    /// Whether object ids are SHA-256.
    pub(super) fn is_sha256(&self) -> bool {
        self.formats.iter().any(|(key, value)| *key == "objectformat" && value == "sha256")
    }

    /// The text of the configuration file that git reads.
    pub(super) fn text(&self) -> String {
        let version = u8::from(!self.formats.is_empty());
        let mut text =
            format!("[core]\nrepositoryformatversion = {version}\nbare = false\nquotePath = false\n");
        for (name, path) in [("attributesFile", &self.attributes), ("excludesFile", &self.excludes)] {
            // Without a value git would use its default.
            let path = path.as_ref().and_then(|path| path.to_str()).unwrap_or("/dev/null");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} = {}", quote(path));
        }
        for (section, key, value) in &self.values {
            let _ = writeln!(text, "[{section}]\n{key} = {value}");
        }
        for (key, value) in &self.formats {
            let _ = writeln!(text, "[extensions]\n{key} = {value}");
        }
        text
    }
}

impl Values {
    fn allow(&self, value: &str) -> bool {
        let is_bool = || matches!(value, "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0" | "");
        match self {
            Self::Bool => is_bool(),
            Self::Words(words) => words.contains(&value),
            Self::BoolOr(words) => words.contains(&value) || is_bool(),
        }
    }
}

/// Quotes a value so that git reads it unchanged.
fn quote(value: &str) -> String {
    let mut quoted = String::from('"');
    for letter in value.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(entries: &[(&str, &str)]) -> String {
        let listed: String = entries.iter().map(|(scope, entry)| format!("{scope}\0{entry}\0")).collect();
        Allowed::read(listed.as_bytes(), Path::new("/home/ann")).text()
    }

    const NOTHING: &str = "[core]\nrepositoryformatversion = 0\nbare = false\nquotePath = false\n\
        attributesFile = \"/dev/null\"\nexcludesFile = \"/dev/null\"\n";

    #[test]
    fn settings_that_run_programs_are_not_allowed() {
        let hostile = [
            "core.sshcommand",
            "core.fsmonitor",
            "core.hookspath",
            "core.worktree",
            "core.pager",
            "core.editor",
            "core.attributesfile",
            "core.excludesfile",
            "core.bare",
            "core.askpass",
            "core.gitproxy",
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
            "filter.x.required",
            "diff.x.textconv",
            "diff.x.command",
            "diff.external",
            "merge.x.driver",
            "alias.diff",
            "credential.helper",
            "include.path",
            "includeif.gitdir:/.path",
            "extensions.partialclone",
            "extensions.worktreeconfig",
            "remote.o.promisor",
            "remote.o.url",
            "remote.o.uploadpack",
            "protocol.ext.allow",
            "gpg.program",
            "submodule.x.update",
            "url.ext::sh.insteadof",
            "interactive.difffilter",
            "safe.directory",
            "trailer.x.cmd",
        ];
        for key in hostile {
            assert_eq!(text(&[("local", &format!("{key}\nsh /tmp/x"))]), NOTHING, "{key}");
            assert_eq!(text(&[("worktree", &format!("{key}\ntrue"))]), NOTHING, "{key}");
        }
        assert_eq!(
            text(&[("local", "core.autocrlf\ntrue\n[filter \"x\"]"), ("local", "core.eol\nlf;x")]),
            NOTHING
        );
    }

    #[test]
    fn settings_that_affect_comparisons_are_allowed() {
        let text = text(&[
            ("global", "core.autocrlf\ninput"),
            ("global", "core.excludesfile\n~/ig\"nore"),
            ("local", "core.autocrlf\nfalse"),
            ("local", "core.filemode"),
            ("local", "extensions.objectformat\nsha256"),
        ]);
        let expected = "[core]\nrepositoryformatversion = 1\nbare = false\nquotePath = false\n\
            attributesFile = \"/dev/null\"\nexcludesFile = \"/home/ann/ig\\\"nore\"\n[core]\nautocrlf = false\n\
            [core]\nfilemode = true\n[extensions]\nobjectformat = sha256\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn only_the_user_declares_directories_safe() {
        let safe = |scope: &str, value: &str| {
            let listed = format!("{scope}\0safe.directory\n{value}\0");
            Allowed::read(listed.as_bytes(), Path::new("/")).is_safe(Path::new("/srv/work"))
        };
        for value in ["*", "/srv/work", "/srv/*", "/srv/work/"] {
            assert!(safe("global", value) && safe("system", value), "{value}");
            assert!(!safe("local", value) && !safe("command", value), "{value}");
        }
        for value in ["/srv", "/srv/work/*", "work", "/other/*"] {
            assert!(!safe("global", value), "{value}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_repository_says_only_known_lines_come_of_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut listed = b"local\0".to_vec();
            listed.extend(bytes);
            let text = Allowed::read(&listed, Path::new("/")).text();
            for line in text.lines() {
                let key = line.split(" = ").next().unwrap_or_default();
                let is_known = ["[core]", "[diff]", "[extensions]", "repositoryformatversion", "bare", "quotePath",
                    "attributesFile", "excludesFile"].contains(&key)
                    || PASSED.iter().any(|(_, name, _)| *name == key)
                    || FORMATS.iter().any(|(name, _)| *name == key);
                prop_assert!(is_known, "{line}");
            }
        }

        #[test]
        fn a_quoted_value_is_one_line(value in "\\PC*|[\"\\\\\n]*") {
            let quoted = quote(&value);
            prop_assert!(!quoted.contains('\n'));
        }
    }
}
