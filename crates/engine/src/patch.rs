//! Splits a unified diff in git's format into files.

use codewright_proto::{VcsFile, VcsStatus};

/// The start of the diff of each file.
const HEAD: &str = "diff --git ";
/// The same after the end of a line.
const NEXT: &[u8] = b"\ndiff --git ";

/// Returns the files of a diff, each with its part of the diff.
#[must_use]
pub fn files(diff: &str) -> Vec<VcsFile> {
    // A line of content starts with a sign, so it never starts a file.
    let begins = diff.match_indices(HEAD).map(|(at, _)| at);
    let begins = begins.filter(|at| *at == 0 || diff.as_bytes()[at - 1] == b'\n');
    let begins: Vec<_> = begins.chain([diff.len()]).collect();
    begins.windows(2).filter_map(|ends| file(&diff[ends[0]..ends[1]])).collect()
}

fn file(patch: &str) -> Option<VcsFile> {
    let lines: Vec<&str> = patch.lines().collect();
    let body = lines.iter().position(|line| line.starts_with("@@")).unwrap_or(lines.len());
    let (head, body) = lines.split_at(body);
    let named = |start: &str| head.iter().find_map(|line| path(line.strip_prefix(start)?));
    let status = match () {
        () if head.iter().any(|line| line.starts_with("new file")) => VcsStatus::Added,
        () if head.iter().any(|line| line.starts_with("deleted file")) => VcsStatus::Deleted,
        () => VcsStatus::Modified,
    };
    let count = |sign: char| body.iter().filter(|line| line.starts_with(sign)).count() as u64;
    let file = named("+++ ").or_else(|| named("--- ")).or_else(|| both(head.first()?.strip_prefix(HEAD)?))?;
    let (additions, deletions) = (count('+'), count('-'));
    let ended = if patch.ends_with('\n') { patch.to_owned() } else { format!("{patch}\n") };
    Some(VcsFile { file, patch: Some(ended), additions, deletions, status })
}

/// Reads a diff in pieces and keeps the files that fit into a size limit. A file that is too large for the rest is
/// skipped; later files are kept if they fit.
pub(crate) struct Kept {
    room: usize,
    bytes: Vec<u8>,
    /// The start of the current file.
    begin: usize,
    is_too_large: bool,
    /// The end of the input, in which the next file may start.
    pending: Vec<u8>,
}

impl Kept {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, bytes: Vec::new(), begin: 0, is_too_large: false, pending: Vec::new() }
    }

    /// Adds the next piece.
    pub(crate) fn push(&mut self, more: &[u8]) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(more);
        let mut from = 0;
        while let Some(at) = pending[from..].windows(NEXT.len()).position(|found| found == NEXT) {
            self.keep(&pending[from..=from + at]);
            self.end_file();
            from += at + 1;
        }
        let until = pending.len().saturating_sub(NEXT.len() - 1).max(from);
        self.keep(&pending[from..until]);
        self.pending = pending.split_off(until);
    }

    /// Returns the kept files at the end of the input.
    pub(crate) fn whole(mut self) -> Vec<u8> {
        let pending = std::mem::take(&mut self.pending);
        self.keep(&pending);
        self.bytes
    }

    /// Returns the kept files if the input was cut. The last file is incomplete.
    pub(crate) fn cut(mut self) -> Vec<u8> {
        self.bytes.truncate(self.begin);
        self.bytes
    }

    fn keep(&mut self, more: &[u8]) {
        if self.bytes.len() + more.len() > self.room {
            self.is_too_large = true;
            self.bytes.truncate(self.begin);
        }
        if !self.is_too_large {
            self.bytes.extend_from_slice(more);
        }
    }

    fn end_file(&mut self) {
        (self.begin, self.is_too_large) = (self.bytes.len(), false);
    }
}

/// Returns the path of a side without the prefix; `None` if the side is missing.
fn path(side: &str) -> Option<String> {
    // Git writes a tab after a name with spaces.
    let side = plain(side.trim_end_matches('\t'));
    side.strip_prefix("a/").or_else(|| side.strip_prefix("b/")).map(str::to_owned)
}

/// Returns the path of a line that names it twice, as for binary files.
fn both(sides: &str) -> Option<String> {
    let middle = sides.len() / 2;
    let (old, new) = (sides.get(..middle)?, sides.get(middle + 1..)?);
    path(old).filter(|old| path(new).as_ref() == Some(old))
}

/// Unquotes a name. Git quotes unusual names and writes their bytes in octal.
fn plain(name: &str) -> String {
    let Some(quoted) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.to_owned();
    };
    let (mut bytes, mut rest) = (Vec::new(), quoted.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &rest[3..];
        } else if let [escaped, behind @ ..] = rest {
            bytes.push(match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                other => *other,
            });
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_file_has_its_part() {
        let gone = "diff --git a/new.txt b/new.txt\ndeleted file mode 100644\nindex c5f1b8e..0000000\n\
                    --- a/new.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-made\n";
        let changed = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\t\n+++ b/a b.txt\t\n\
                       @@ -1,2 +1,2 @@\n-diff --git a/x b/x\n+--- x\n keep\n";
        let all = files(&format!("{gone}{changed}"));
        let expected = json!([
            {"file": "new.txt", "status": "deleted", "additions": 0, "deletions": 1, "patch": gone},
            {"file": "a b.txt", "status": "modified", "additions": 1, "deletions": 1, "patch": changed},
        ]);
        assert_eq!(json!(all), expected);
        assert_eq!(files(""), []);
        assert_eq!(files("no diff\n@@\n"), []);
    }

    #[test]
    fn every_kind_of_name_is_read() {
        for (head, expected) in [
            (
                "diff --git a/x.png b/x.png\nnew file mode 100644\nBinary files /dev/null and b/x.png differ",
                "x.png",
            ),
            ("diff --git a/old b/new\n--- a/old\n+++ b/new", "new"),
            ("diff --git \"a/\\303\\244\" \"b/\\303\\244\"\n+++ \"b/\\303\\244\"", "\u{e4}"),
            ("diff --git \"a/q\\\"t\\tx\" \"b/q\\\"t\\tx\"", "q\"t\tx"),
        ] {
            let all = files(head);
            assert_eq!(all.first().map(|file| file.file.as_str()), Some(expected), "{head}");
        }
        assert_eq!(files("diff --git a/x"), []);
    }

    #[test]
    fn whole_files_are_kept_while_they_fit() {
        let file = |name: &str, lines: usize| {
            format!("diff --git a/{name} b/{name}\n{}", "+x diff --git \n".repeat(lines))
        };
        let (small, large, last) = (file("a", 2), file("b", 100), file("c", 3));
        let diff = format!("{small}{large}{last}");
        for piece in [1, 7, 12, 13, 100, diff.len()] {
            let kept = |room: usize| {
                let mut kept = Kept::new(room);
                diff.as_bytes().chunks(piece).for_each(|bytes| kept.push(bytes));
                kept
            };
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            assert_eq!(text(kept(diff.len()).whole()), diff, "{piece}");
            assert_eq!(text(kept(small.len() + last.len()).whole()), format!("{small}{last}"), "{piece}");
            assert_eq!(text(kept(small.len()).whole()), small, "{piece}");
            assert_eq!(text(kept(diff.len()).cut()), format!("{small}{large}"), "{piece}");
            assert_eq!(text(kept(0).whole()), "", "{piece}");
        }
    }
}
