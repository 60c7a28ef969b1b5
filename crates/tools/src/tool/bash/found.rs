//! What a `find` can find.
//!
//! A `find` with names is compared with the directories as they are, if its expression only narrows them. Every other one may
//! find anything.

use std::cell::Cell;
use std::path::Path;

use super::reach::{REGENERATED, glob};
use super::word::Word;

/// Tests and actions without a value that add no results.
const PLAIN: &[&str] = &["-P", "-prune", "-print", "-print0", "-depth", "-xdev", "-mount"];
/// The cost of a match in entries, because files that say what git ignores are read.
const MATCH_COST: usize = 8;
/// The deepest directory that is searched, below the first.
const MAX_DEPTH: usize = 32;

/// The results of a `find`.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    /// The directories that it searches.
    pub(super) roots: Vec<String>,
    pub(super) names: Names,
}

/// The wildcards of which every result matches one.
#[derive(Debug, PartialEq)]
pub(super) struct Names(Vec<String>);

impl Found {
    /// Reads the words after the name of a `find`. `None` if it may find something without one of the names.
    pub(super) fn of(words: &[Word]) -> Option<Self> {
        let is_known = words.iter().all(|word| word.is_closed && word.values.len() == 1);
        let mut texts = words.iter().map(Word::text).skip_while(|text| *text == "-P").peekable();
        let mut roots = Vec::new();
        while let Some(root) = texts.next_if(|text| !text.starts_with(['-', '(', '!'])) {
            roots.push(root.to_owned());
        }
        let (mut names, mut is_group) = (Vec::new(), false);
        while let Some(text) = texts.next() {
            match text {
                "-name" => names.push(texts.next()?.to_owned()),
                "-type" if texts.peek() == Some(&"d") => {
                    texts.next();
                }
                "-maxdepth" | "-mindepth" => {
                    texts.next()?;
                }
                "-not" | "!" if matches!(texts.peek(), Some(&("-name" | "-path" | "-wholename"))) => {
                    texts.next();
                    texts.next()?;
                }
                "(" if !is_group && texts.peek() == Some(&"-name") => is_group = true,
                ")" if is_group => is_group = false,
                "-o" | "-or" if is_group && texts.peek() == Some(&"-name") => {}
                "-exec" | "-execdir" => {
                    texts.find(|text| matches!(*text, ";" | "+"))?;
                }
                text if PLAIN.contains(&text) => {}
                _ => return None,
            }
        }
        let is_plain = |name: &String| !name.contains(['[', '\\', '/']);
        if roots.is_empty() {
            roots.push(".".to_owned());
        }
        (is_known && !names.is_empty() && names.iter().all(is_plain))
            .then_some(Self { roots, names: Names(names) })
    }
}

impl Names {
    fn fit(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        self.0.iter().any(|pattern| glob(&pattern.chars().collect::<Vec<_>>(), &name))
    }

    /// Whether something holds of everything below a directory whose name matches. `false` if there are more entries than
    /// `rest`. A directory of which it holds is not searched, because it holds of everything inside.
    pub(super) fn all_below(&self, root: &Path, rest: &Cell<usize>, holds: &dyn Fn(&Path) -> bool) -> bool {
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.is_none_or(|name| self.fit(&name)) && !holds(root) {
            return false;
        }
        let mut waiting = vec![(root.to_owned(), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            // An unreadable directory cannot be searched by the command, either.
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_match = self.fit(&name.to_string_lossy());
                let Some(left) = rest.get().checked_sub(if is_match { MATCH_COST } else { 1 }) else {
                    return false;
                };
                rest.set(left);
                if is_match {
                    if !holds(&path) {
                        return false;
                    }
                } else if is_directory && !REGENERATED.iter().any(|known| name == *known) {
                    if depth == MAX_DEPTH {
                        return false;
                    }
                    waiting.push((path, depth + 1));
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(Vec<String>, Vec<String>)> {
        let words: Vec<_> = line.split(' ').map(Word::fixed).collect();
        Found::of(&words).map(|found| (found.roots, found.names.0))
    }

    #[test]
    fn only_an_expression_that_narrows_is_understood() {
        for (line, roots, names) in [
            (". -name a -type d -exec rm -rf {} +", &["."][..], &["a"][..]),
            ("src lib -type d -name a -prune -exec rm -rf {} ;", &["src", "lib"], &["a"]),
            ("( -name a -o -name b ) -print0", &["."], &["a", "b"]),
            (". -name *.egg-info -not -path ./x/*", &["."], &["*.egg-info"]),
        ] {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            assert_eq!(of(line), Some((owned(roots), owned(names))), "{line}");
        }
        for line in [
            ".",
            ". -type d",
            ". -name a -o -type d",
            ". -name a -o -name b",
            "-L . -name a",
            ". -not -name a",
            ". ( -name a -o -type d )",
            ". -name a -type f",
            ". -iname a",
            ". -name [a]",
            ". -name a -fprint x",
            ". -name",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
