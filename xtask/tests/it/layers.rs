//! The imports between the files of one crate.
//!
//! A file imports another if it names one of its items, in a `use` or in a path. An item that a module
//! passes on with `pub use` belongs to the file that it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{files, root};

/// A module or an item: the segments after `crate::`.
type Path = Vec<String>;

/// The imports of every module. The root module is left out: it only declares the others.
pub(crate) type Imports = BTreeMap<Path, BTreeSet<Path>>;

/// Reads the imports between the files of a crate of this workspace.
pub(crate) fn imports(name: &str) -> Imports {
    let source = root().join("crates").join(name).join("src");
    let sources = files(&source, "rs").into_iter().map(|path| {
        let inside = path.strip_prefix(&source).unwrap().with_extension("");
        let module = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect::<Path>();
        (if module == ["lib"] { Path::new() } else { module }, fs::read_to_string(&path).unwrap())
    });
    of_sources(sources)
}

fn of_sources(sources: impl Iterator<Item = (Path, String)>) -> Imports {
    let texts: BTreeMap<Path, Vec<String>> =
        sources.map(|(module, text)| (module, tokens(&without_tests(&text)))).collect();
    let modules: BTreeSet<Path> = texts.keys().cloned().collect();
    let uses: BTreeMap<&Path, Vec<Use>> = texts.iter().map(|(module, text)| (module, uses(text))).collect();
    let tree = Tree::new(modules, &uses);
    let mut imports = Imports::new();
    for (module, text) in texts.iter().filter(|(module, _)| !module.is_empty()) {
        let found = imports.entry(module.clone()).or_default();
        let uses = &uses[module];
        for path in uses.iter().map(|found| found.path.clone()).chain(paths(text)) {
            let alias = uses.iter().find(|known| known.alias == path[0]);
            let absolute = alias
                .filter(|_| path.len() > 1)
                .and_then(|alias| tree.absolute(module, &[&alias.path, &path[1..]].concat()))
                .or_else(|| tree.absolute(module, &path));
            if let Some(owner) = absolute.and_then(|path| tree.owner(path))
                && !owner.is_empty()
                && owner != *module
            {
                found.insert(owner);
            }
        }
    }
    imports
}

/// The modules of a crate and the names that they pass on.
struct Tree {
    modules: BTreeSet<Path>,
    passed_on: BTreeMap<Path, Path>,
}

impl Tree {
    fn new(modules: BTreeSet<Path>, uses: &BTreeMap<&Path, Vec<Use>>) -> Self {
        let mut tree = Self { modules, passed_on: BTreeMap::new() };
        let mut passed_on = BTreeMap::new();
        for (module, uses) in uses {
            for found in uses.iter().filter(|found| found.is_passed_on) {
                if let Some(path) = tree.absolute(module, &found.path) {
                    passed_on.insert([module.as_slice(), std::slice::from_ref(&found.alias)].concat(), path);
                }
            }
        }
        tree.passed_on = passed_on;
        tree
    }

    /// The path from the crate's root; `None` for another crate's.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let above = &module[..module.len().checked_sub(1)?];
                match rest.first().map(String::as_str) {
                    Some("super") => self.absolute(above, rest),
                    _ => Some([above, rest].concat()),
                }
            }
            _ => {
                let inside = [module, std::slice::from_ref(first)].concat();
                self.modules.contains(&inside).then(|| [module, path].concat())
            }
        }
    }

    /// The module that an item is in.
    fn owner(&self, mut path: Path) -> Option<Path> {
        // No name is passed on through more modules than there are.
        for _ in 0..self.modules.len() {
            let passed_on = (1..=path.len()).rev().find_map(|end| {
                let target =
                    self.passed_on.get(&path[..end]).filter(|_| !self.modules.contains(&path[..end]));
                target.map(|target| [target, &path[end..]].concat())
            });
            match passed_on {
                Some(target) => path = target,
                None => break,
            }
        }
        (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|part| self.modules.contains(part))
    }
}

/// The largest set of files that all reach each other by imports.
pub(crate) fn largest_cycle(imports: &Imports) -> BTreeSet<Path> {
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = imports
        .keys()
        .map(|module| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![module]);
            while let Some(next) = open.pop() {
                open.extend(imports.get(next).into_iter().flatten().filter(|other| reached.insert(*other)));
            }
            (module, reached)
        })
        .collect();
    let cycle = |module: &Path| -> BTreeSet<Path> {
        let others = reach[module].iter().filter(|other| reach[**other].contains(module));
        others.map(|other| (*other).clone()).collect()
    };
    imports.keys().map(cycle).max_by_key(BTreeSet::len).unwrap_or_default()
}

/// A name that a module brings in.
struct Use {
    path: Path,
    alias: String,
    is_passed_on: bool,
}

fn uses(text: &[String]) -> Vec<Use> {
    let mut found = Vec::new();
    for (at, _) in text.iter().enumerate().filter(|(_, token)| *token == "use") {
        let end = text[at..].iter().position(|token| token == ";").map_or(text.len(), |length| at + length);
        // `pub use` or `pub(crate) use`.
        let is_passed_on = at > 0 && matches!(text[at - 1].as_str(), "pub" | ")");
        let mut names = Vec::new();
        use_tree(&text[at + 1..end], &Path::new(), &mut names);
        found.extend(names.into_iter().map(|(path, alias)| Use { path, alias, is_passed_on }));
    }
    found
}

fn use_tree(tree: &[String], prefix: &[String], names: &mut Vec<(Path, String)>) {
    let mut path = prefix.to_vec();
    for (at, token) in tree.iter().enumerate() {
        match token.as_str() {
            "::" => {}
            "{" => {
                let (mut depth, mut start) = (0, at + 1);
                for (end, token) in tree.iter().enumerate().skip(at + 1) {
                    match token.as_str() {
                        "," | "}" if depth == 0 => {
                            if start < end {
                                use_tree(&tree[start..end], &path, names);
                            }
                            start = end + 1;
                        }
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                }
                return;
            }
            "as" => {
                names.push((path, tree[at + 1].clone()));
                return;
            }
            "self" if !prefix.is_empty() => {}
            name => path.push(name.to_owned()),
        }
    }
    let alias = path.last().cloned().unwrap_or_default();
    names.push((path, alias));
}

/// The paths of more than one segment outside of `use`.
fn paths(text: &[String]) -> Vec<Path> {
    let is_name = |token: &String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let (mut found, mut at, mut is_in_use) = (Vec::new(), 0, false);
    while at < text.len() {
        is_in_use = (is_in_use || text[at] == "use") && text[at] != ";";
        let mut path = Path::new();
        while !is_in_use && text.get(at).is_some_and(is_name) {
            path.push(text[at].clone());
            if text.get(at + 1).is_none_or(|token| token != "::") {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            found.push(path);
        }
        at += 1;
    }
    found
}

/// Everything before the tests of a file, which come last.
pub(crate) fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Words, `::` and single other characters; comments, texts and characters are left out.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(length) = raw_text(rest) {
            length
        } else if first == '"' {
            1 + text_end(&rest[1..], '"')
        } else if let Some(length) = character(rest) {
            length
        } else if name > 0 {
            tokens.push(rest[..name].to_owned());
            name
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a text such as `r#"…"#`, if there is one here.
fn raw_text(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let marks = after.len() - after.trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(marks));
    let inside = after[marks..].strip_prefix('"')?;
    Some(1 + marks + 1 + inside.find(&end)? + end.len())
}

/// The length of a character such as `'{'`, if there is one here; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let is_escaped = inside.starts_with('\\');
    let is_closed = inside.chars().nth(1) == Some('\'');
    (is_escaped || is_closed).then(|| 1 + text_end(inside, '\''))
}

/// Where a text ends, its closing mark included.
fn text_end(inside: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == mark => return at + 1,
            _ => {}
        }
    }
    inside.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(sources: &[(&str, &str)]) -> Imports {
        let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        of_sources(sources.iter().map(|(name, text)| (path(name), (*text).to_owned())))
    }

    #[track_caller]
    fn check(sources: &[(&str, &str)], expected: &[&str]) {
        let found = modules(sources).into_iter().flat_map(|(module, others)| {
            others.into_iter().map(move |other| format!("{} -> {}", module.join("::"), other.join("::")))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_import_is_found_wherever_a_module_is_named() {
        check(&[("", "mod a; mod b;"), ("a", "use crate::b::X;"), ("b", "")], &["a -> b"]);
        check(&[("a", "fn f() { crate::b::g() }"), ("b", "")], &["a -> b"]);
        check(&[("a", "use crate::{b, c::{self, Y as Z}};"), ("b", ""), ("c", "")], &["a -> b", "a -> c"]);
        check(&[("a", "mod b; use b::X;"), ("a::b", "use super::Y;")], &["a -> a::b", "a::b -> a"]);
        check(&[("a", "use std::b::X; // crate::b\nconst T: &str = \"crate::b::X\";"), ("b", "")], &[]);
        check(&[("a", "#[cfg(test)]\nmod tests { use crate::b; }"), ("b", "")], &[]);
    }

    #[test]
    fn a_name_that_is_passed_on_belongs_to_its_file() {
        let passing = ("a", "mod b; pub(crate) use b::X;");
        check(&[passing, ("a::b", ""), ("c", "use crate::a::X;")], &["a -> a::b", "c -> a::b"]);
        check(&[("", "pub use a::X;"), ("a", ""), ("c", "use crate::X;")], &["c -> a"]);
    }

    #[test]
    fn a_cycle_is_every_file_that_reaches_itself() {
        let sources =
            [("a", "use crate::b;"), ("b", "use crate::c;"), ("c", "use crate::a;"), ("d", "use crate::a;")];
        let cycle: Vec<_> = largest_cycle(&modules(&sources)).into_iter().flatten().collect();
        assert_eq!(cycle, ["a", "b", "c"]);
    }
}
