//! Globs whose brackets may be part of a file name, such as `app/[id]/page.tsx` in a Next.js project.

use std::path::Path;

use codewright_workspace::{Globs, Likeness, alike_glob, existing};

/// Returns what a glob may mean, in the order in which a search tries it. The first one that finds a file counts.
///
/// The last one finds files whose names only look like what was typed, such as names with full-width letters.
pub(crate) fn attempts(root: &Path, pattern: &str) -> Vec<Globs> {
    let readings = readings(root, pattern);
    let plain = Globs::of_plain_names(readings.iter().cloned());
    readings.into_iter().map(|reading| Globs::from(vec![reading])).chain([plain]).collect()
}

/// Returns the readings of a glob, in the order in which they are tried.
///
/// Brackets are first read as part of a name, then only where a file or directory with that name exists below `root`, and
/// at last as a class of characters. A glob without brackets has one reading.
fn readings(root: &Path, pattern: &str) -> Vec<String> {
    let mut readings = Vec::new();
    if pattern.contains('[') {
        readings.push(escape(pattern));
    }
    if pattern.contains(['[', '{', '\\']) || pattern.starts_with('!') {
        readings.push(escape_existing(root, pattern));
    }
    readings.push(pattern.to_owned());
    let mut readings: Vec<String> = readings.iter().flat_map(|reading| spelled(reading)).collect();
    readings.dedup();
    readings
}

/// The glob for other spellings of its names. The exact name wins if the glob has only one.
fn spelled(pattern: &str) -> Vec<String> {
    let alike = alike_glob(pattern).into_owned();
    let is_name = !pattern.replace("[[]", "").contains(['*', '?', '[', '{', '!']);
    if is_name { vec![pattern.to_owned(), alike] } else { vec![alike] }
}

/// Makes all brackets literal. A backslash cannot, because it separates paths on some systems.
fn escape(pattern: &str) -> String {
    pattern.replace('[', "[[]")
}

/// Makes the brackets literal in the leading names that exist.
fn escape_existing(root: &Path, pattern: &str) -> String {
    let mut at = root.to_owned();
    let mut exists = true;
    let names = pattern.split('/').map(|name| {
        at.push(name);
        match existing(&at, Likeness::Compatible).filter(|_| exists) {
            Some(found) => at = found,
            None => exists = false,
        }
        if exists { escape_all(name) } else { name.to_owned() }
    });
    let escaped = names.collect::<Vec<_>>().join("/");
    // A name that begins with `!` would exclude files.
    let is_name = pattern.starts_with('!') && escaped_exists(root, pattern);
    if is_name { format!("\\{escaped}") } else { escaped }
}

/// Makes the brackets and backslashes of a name literal.
fn escape_all(name: &str) -> String {
    escape(&name.replace('\\', "\\\\")).replace('{', "[{]").replace('}', "[}]")
}

/// Reports whether the first name of a glob exists.
fn escaped_exists(root: &Path, pattern: &str) -> bool {
    let name = pattern.split('/').next().unwrap_or_default();
    existing(&root.join(name), Likeness::Compatible).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_exists_is_read_before_a_class() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("app/[id]")).unwrap();
        for name in ["app/{a}", "b\\s", "!draft"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let check = |pattern: &str, expected: &[&str]| {
            assert_eq!(readings(folder.path(), pattern), expected, "{pattern}");
        };
        check("src/**/*.rs", &["src/**/*.rs"]);
        check("app/[id]/page.tsx", &["app/[[]id]/page.tsx", "app/[id]/page.tsx"]);
        check("app/[id]/[a-z]*", &["app/[[]id]/[[]a-z]*", "app/[[]id]/[a-z]*", "app/[id]/[a-z]*"]);
        check("[0-9]*.txt", &["[[]0-9]*.txt", "[0-9]*.txt"]);
        check("app/[[...slug]]/x", &["app/[[][[]...slug]]/x", "app/[[...slug]]/x"]);
        check("app/{a}/x", &["app/[{]a[}]/x", "app/{a}/x"]);
        check("app/{a,b}/x", &["app/{a,b}/x"]);
        check("b\\s/*", &["b\\\\s/*", "b\\s/*"]);
        check("c\\s/*", &["c\\s/*"]);
        check("!draft/*", &["\\!draft/*", "!draft/*"]);
        check("!other/*", &["!other/*"]);
        check("caf\u{e9}", &["caf\u{e9}", "caf{\u{e9},e\u{301}}"]);
        check("caf\u{e9}*", &["caf{\u{e9},e\u{301}}*"]);
    }
}
