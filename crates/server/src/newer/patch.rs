//! A unified diff as git prints it, file by file.

use serde_json::{Value, json};

/// What the diff of each file begins with.
const HEAD: &str = "diff --git ";

/// The files of a diff, each with its own part of it.
pub(super) fn files(diff: &str) -> Vec<Value> {
    let mut pieces: Vec<Vec<&str>> = Vec::new();
    // Lines of a file's content have a sign before them, so none of them begins a file.
    for line in diff.lines() {
        match pieces.last_mut() {
            _ if line.starts_with(HEAD) => pieces.push(vec![line]),
            Some(piece) => piece.push(line),
            None => {}
        }
    }
    pieces.iter().filter_map(|piece| file(piece)).collect()
}

fn file(lines: &[&str]) -> Option<Value> {
    let body = lines.iter().position(|line| line.starts_with("@@")).unwrap_or(lines.len());
    let (head, body) = lines.split_at(body);
    let named = |start: &str| head.iter().find_map(|line| path(line.strip_prefix(start)?));
    let status = match () {
        () if head.iter().any(|line| line.starts_with("new file")) => "added",
        () if head.iter().any(|line| line.starts_with("deleted file")) => "deleted",
        () => "modified",
    };
    let count = |sign: char| body.iter().filter(|line| line.starts_with(sign)).count();
    let path = named("+++ ").or_else(|| named("--- ")).or_else(|| both(head.first()?.strip_prefix(HEAD)?))?;
    Some(json!({
        "path": path,
        "status": status,
        "additions": count('+'),
        "deletions": count('-'),
        "patch": format!("{}\n", lines.join("\n")),
    }))
}

/// The path of a side, without the letter of the side; none for a side that is not there.
fn path(side: &str) -> Option<String> {
    // A name with blanks is followed by a tab.
    let side = plain(side.trim_end_matches('\t'));
    side.strip_prefix("a/").or_else(|| side.strip_prefix("b/")).map(str::to_owned)
}

/// The path in a line that names it twice, as for files that are no text.
fn both(sides: &str) -> Option<String> {
    let middle = sides.len() / 2;
    let (old, new) = (sides.get(..middle)?, sides.get(middle + 1..)?);
    path(old).filter(|old| path(new).as_ref() == Some(old))
}

/// A name as it is: git writes unusual ones in quotes, with the bytes in octal.
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
    use super::*;

    #[test]
    fn each_file_has_its_own_part() {
        let gone = "diff --git a/new.txt b/new.txt\ndeleted file mode 100644\nindex c5f1b8e..0000000\n\
                    --- a/new.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-made\n";
        let changed = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\t\n+++ b/a b.txt\t\n\
                       @@ -1,2 +1,2 @@\n-diff --git a/x b/x\n+--- x\n keep\n";
        let all = files(&format!("{gone}{changed}"));
        let expected = json!([
            {"path": "new.txt", "status": "deleted", "additions": 0, "deletions": 1, "patch": gone},
            {"path": "a b.txt", "status": "modified", "additions": 1, "deletions": 1, "patch": changed},
        ]);
        assert_eq!(json!(all), expected);
        assert_eq!(files(""), Vec::<Value>::new());
        assert_eq!(files("no diff\n@@\n"), Vec::<Value>::new());
    }

    #[test]
    fn a_file_is_named_whatever_its_name_is() {
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
            assert_eq!(all.first().map(|file| file["path"].clone()), Some(json!(expected)), "{head}");
        }
        assert_eq!(files("diff --git a/x"), Vec::<Value>::new());
    }
}
