//! The tests that `docs/parity.md` names.
//!
//! A row that claims a state of "works" or "partly" lists its tests. An entry is a module (`engine::turn`), a function
//! (`engine::turn::an_empty_session_is_idle`), a module of the tests of the binary (`e2e::tools`), or a command
//! (`cargo xtask web`), or a script of CI (`.ci/editors`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::{files, root};

/// A row of the table of features.
struct Row {
    feature: String,
    state: String,
    tests: String,
}

/// Returns the rows of the table of features.
fn rows(page: &str) -> Vec<Row> {
    let table = page.lines().skip_while(|line| !line.starts_with("| feature |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 4, "a row has four cells: {line}");
        Row { feature: cells[0].to_owned(), state: cells[1].to_owned(), tests: cells[3].to_owned() }
    })
    .collect()
}

/// Returns the problems of a row. `problem` returns the problem of one entry.
fn problems(row: &Row, problem: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    let named = |what: String| format!("{}: {what}", row.feature);
    match row.state.as_str() {
        "works" | "partly" => {}
        "not yet" => return Vec::new(),
        other => return vec![named(format!("`{other}` is not a state"))],
    }
    let pieces: Vec<_> = row.tests.split('`').collect();
    let (between, entries): (Vec<_>, Vec<_>) =
        pieces.iter().enumerate().partition(|(position, _)| position % 2 == 0);
    let mut found = Vec::new();
    if entries.is_empty() {
        found.push(named("lists no test".to_owned()));
    }
    if let Some((_, text)) = between.iter().find(|(_, text)| !["", ","].contains(&text.trim())) {
        found.push(named(format!("`{text}` is not the name of a test")));
    }
    found.extend(entries.iter().filter_map(|(_, entry)| problem(entry)).map(named));
    found
}

/// Returns why an entry is not a test, or `None` if it is one.
fn entry_problem(entry: &str) -> Option<String> {
    if let Some(command) = entry.strip_prefix("cargo xtask ") {
        let main = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
        let is_known =
            main.contains(&format!("Some(\"{command}\")")) || main.contains(&format!("\"{command}\" =>"));
        return (!is_known).then(|| format!("`{entry}` is not a command"));
    }
    if entry.starts_with(".ci/") {
        let run = fs::read_to_string(root().join(".ci/run")).unwrap();
        let is_run = run.lines().any(|line| line == entry) && root().join(entry).is_file();
        return (!is_run).then(|| format!("`{entry}` is not a script of `.ci/run`"));
    }
    let mut segments: Vec<_> = entry.split("::").collect();
    let krate = match segments.remove(0) {
        "e2e" => root().join("crates/codewright"),
        "xtask" => root().join("xtask"),
        name => root().join("crates").join(name),
    };
    if segments.is_empty() || !krate.join("Cargo.toml").is_file() {
        return Some(format!("`{entry}` does not name a module of a crate"));
    }
    let roots = if entry.starts_with("e2e::") {
        vec![krate.join("tests/it")]
    } else {
        vec![krate.join("tests/it"), krate.join("src")]
    };
    let is_test = roots.iter().any(|base| {
        module(base, &segments).is_some_and(|sources| sources.iter().any(|source| has_test(source)))
            || segments.split_last().is_some_and(|(name, above)| {
                module(base, above)
                    .is_some_and(|sources| sources.iter().any(|source| has_function(source, name)))
            })
    });
    (!is_test).then(|| format!("`{entry}` has no test"))
}

/// Returns the sources of a module and its submodules, if it exists and its parent declares it.
fn module(base: &Path, segments: &[&str]) -> Option<Vec<String>> {
    let (name, above) = segments.split_last()?;
    let mut path = base.to_owned();
    path.extend(above);
    let parents: Vec<PathBuf> = if above.is_empty() {
        ["lib.rs", "main.rs"].iter().map(|file| base.join(file)).collect()
    } else {
        vec![path.with_extension("rs")]
    };
    let declares = |parent: &PathBuf| {
        let text = fs::read_to_string(parent).unwrap_or_default();
        text.lines().any(|line| line.ends_with(&format!("mod {name};")))
    };
    let file = path.join(format!("{name}.rs"));
    if !file.is_file() || !parents.iter().any(declares) {
        return None;
    }
    let mut paths = vec![file];
    let inner = path.join(name);
    if inner.is_dir() {
        paths.extend(files(&inner, "rs"));
    }
    Some(paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect())
}

/// Whether a source has a test that is not ignored.
fn has_test(source: &str) -> bool {
    tests(source).next().is_some()
}

/// Whether a source has a test with this name that is not ignored.
fn has_function(source: &str, name: &str) -> bool {
    tests(source).any(|declared| declared.contains(&format!("fn {name}(")))
}

/// Returns the declarations of the tests that are not ignored.
fn tests(source: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let starts: Vec<usize> = (0..lines.len()).filter(|at| is_attribute(lines[*at])).collect();
    starts.into_iter().filter_map(move |at| {
        let declared = lines[at..].iter().position(|line| line.contains("fn "))? + at;
        let is_ignored = lines[at..declared].iter().any(|line| line.starts_with("#[ignore"));
        (!is_ignored).then(|| lines[declared])
    })
}

/// Whether a line marks a test. Tests of properties are in a macro, which has the same attribute.
fn is_attribute(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test")
}

#[test]
fn the_tests_of_every_feature_exist() {
    let page = fs::read_to_string(root().join("docs/parity.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() > 30, "only {} rows were found", rows.len());
    let found: Vec<_> = rows.iter().flat_map(|row| problems(row, &entry_problem)).collect();
    assert!(found.is_empty(), "docs/parity.md:\n{}", found.join("\n"));
}

#[track_caller]
fn check(state: &str, tests: &str, expected: &[&str]) {
    let row = Row { feature: "X".to_owned(), state: state.to_owned(), tests: tests.to_owned() };
    assert_eq!(problems(&row, &entry_problem), expected, "{tests}");
}

#[test]
fn existing_modules_functions_and_commands_are_accepted() {
    check("works", "`xtask::parity`, `xtask::links::links_of_all_forms_are_found`", &[]);
    check("partly", "`e2e::undo`,`engine::turn`, `tools::tool::bash`, `cargo xtask contract`", &[]);
    check("not yet", "", &[]);
}

#[test]
fn rows_without_tests_are_rejected() {
    check("works", "", &["X: lists no test"]);
    check("partly", "by hand", &["X: lists no test", "X: `by hand` is not the name of a test"]);
    check("mostly", "`e2e::undo`", &["X: `mostly` is not a state"]);
    check("works", "`e2e::undo` and more", &["X: ` and more` is not the name of a test"]);
}

#[test]
fn missing_modules_functions_and_commands_are_rejected() {
    check("works", "`engine::nonsense`", &["X: `engine::nonsense` has no test"]);
    check("works", "`xtask::links::nonsense`", &["X: `xtask::links::nonsense` has no test"]);
    check("works", "`nonsense::a`", &["X: `nonsense::a` does not name a module of a crate"]);
    check("works", "`engine`", &["X: `engine` does not name a module of a crate"]);
    check("works", "`cargo xtask nonsense`", &["X: `cargo xtask nonsense` is not a command"]);
    // A module with helpers only.
    check("works", "`e2e::support`", &["X: `e2e::support` has no test"]);
}

#[test]
fn ignored_tests_do_not_count() {
    assert!(has_test("#[test]\nfn a() {}"));
    assert!(has_test("#[tokio::test]\nasync fn a() {}"));
    assert!(!has_test("#[test]\n#[ignore = \"slow\"]\nfn a() {}"));
    assert!(!has_function("#[test]\nfn a() {}\nfn b() {}", "b"));
}

/// Returns the details of a feature, which a long cell refers to, in one line.
fn details(page: &str, feature: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("\n### {feature} in detail\n"))?;
    let lines = rest.lines().take_while(|line| !line.starts_with('#'));
    Some(lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
}

/// Returns the lines of what is missing, from the sentences of the table and its details that begin with "Missing:".
fn missing(page: &str) -> String {
    let table = page.lines().skip_while(|line| !line.starts_with("| feature |")).skip(2);
    let mut lines = String::new();
    for row in table.take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (feature, state, cell) = (cells[0], cells[1], cells[2]);
        let details = details(page, feature);
        let text = details.as_deref().unwrap_or(cell);
        let named = text.split_once("Missing: ").map(|(_, rest)| rest.split(". ").next().unwrap_or(rest));
        match (state, named) {
            ("not yet", _) => lines.push_str(&format!("- {feature}\n")),
            (_, Some(named)) => lines.push_str(&format!("- {feature}: {}\n", named.trim_end_matches('.'))),
            (_, None) => {}
        }
    }
    lines
}

/// The longest cell of a table, in characters.
const MAX_CELL_CHARS: usize = 200;

#[test]
fn the_cells_of_every_table_are_short() {
    let page = fs::read_to_string(root().join("docs/parity.md")).unwrap();
    let cells = page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|'));
    let long: Vec<_> = cells.filter(|cell| cell.trim().chars().count() > MAX_CELL_CHARS).collect();
    assert!(long.is_empty(), "move the text below the table, to \"Details\": {long:?}");
}

#[test]
fn a_feature_with_details_says_the_same_in_its_cell() {
    let page = fs::read_to_string(root().join("docs/parity.md")).unwrap();
    let mut with_details = 0;
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(details) = details(&page, cells[0]) else { continue };
        with_details += 1;
        let (summary, rest) =
            cells[2].split_once(" … [all](").unwrap_or_else(|| panic!("{} has no link", cells[0]));
        assert!(details.to_lowercase().starts_with(&summary.to_lowercase()), "{}: {summary}", cells[0]);
        if let Some((_, named)) = rest.split_once("Missing: ") {
            assert!(details.contains(&format!("Missing: {named}")), "{}: {named}", cells[0]);
        }
    }
    assert_eq!(with_details, page.lines().filter(|line| line.ends_with(" in detail")).count());
    assert!(with_details > 20, "{with_details}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of the test, not configuration of the program")]
fn the_list_of_missing_parts_is_that_of_parity() {
    let (begin, end) = ("by a test of xtask -->\n", "<!-- end of missing -->");
    let path = root().join("docs/guides/from-opencode.md");
    let page = fs::read_to_string(&path).unwrap();
    let parity = fs::read_to_string(root().join("docs/parity.md")).unwrap();
    let expected = missing(&parity);
    let (head, rest) = page.split_once(begin).unwrap();
    let (found, tail) = rest.split_once(end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{head}{begin}{expected}{end}{tail}")).unwrap();
        return;
    }
    assert!(expected.lines().count() > 3, "{expected}");
    assert_eq!(found, expected, "run this test with UPDATE_DOCS=1");
}

#[test]
fn the_index_lists_every_page() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let pages = files(&root().join("docs"), "md");
    let unlisted: Vec<_> = pages
        .iter()
        .filter_map(|page| page.strip_prefix(root().join("docs")).ok())
        .filter(|page| *page != Path::new("README.md") && !index.contains(&format!("]({})", page.display())))
        .collect();
    assert!(pages.len() > 20 && unlisted.is_empty(), "{unlisted:?}");
}
