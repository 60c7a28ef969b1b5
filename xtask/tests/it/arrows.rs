//! The layers of the workspace: which crate may import which, and how large import cycles of modules may be.
//!
//! The table below is exact: a new dependency must be added here and to the table in ARCHITECTURE.md.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::layers::{imports, largest_cycle};

/// A crate, its imports, and the additional imports of its tests.
struct Crate {
    name: &'static str,
    imports: &'static [&'static str],
    tests: &'static [&'static str],
}

/// The crates that the tests of every crate may import.
const FOR_ALL_TESTS: &[&str] = &["codewright-testkit", "codewright-scripted"];

const CRATES: &[Crate] = &[
    package("codewright-memory", &[]),
    package("codewright-proto", &[]),
    package("codewright-scripted", &[]),
    package("codewright-config", &["codewright-proto"]),
    package("codewright-store", &["codewright-proto"]),
    package("codewright-llm", &["codewright-proto"]),
    package("codewright-telemetry", &["codewright-proto"]),
    package("codewright-workspace", &[]),
    package("codewright-snapshot", &["codewright-proto", "codewright-workspace"]),
    package("codewright-tools", &["codewright-workspace"]),
    package(
        "codewright-engine",
        &[
            "codewright-memory",
            "codewright-proto",
            "codewright-config",
            "codewright-store",
            "codewright-llm",
            "codewright-workspace",
            "codewright-snapshot",
            "codewright-tools",
            "codewright-telemetry",
        ],
    ),
    Crate {
        name: "codewright-server",
        imports: &["codewright-memory", "codewright-proto", "codewright-engine"],
        // The tests use the client, and an engine with a configuration.
        tests: &["codewright-client", "codewright-config"],
    },
    package("codewright-client", &["codewright-proto"]),
    package("codewright-tui", &["codewright-proto", "codewright-client"]),
    package(
        "codewright",
        &[
            "codewright-memory",
            "codewright-proto",
            "codewright-config",
            "codewright-store",
            "codewright-llm",
            "codewright-workspace",
            "codewright-engine",
            "codewright-server",
            "codewright-client",
            "codewright-tui",
            "codewright-scripted",
        ],
    ),
    package("codewright-testkit", &["codewright-proto", "codewright-client", "codewright-scripted"]),
    package(
        "xtask",
        &[
            "codewright-proto",
            "codewright-llm",
            "codewright-store",
            "codewright-snapshot",
            "codewright-scripted",
            "codewright-testkit",
            "codewright-tools",
        ],
    ),
];

const fn package(name: &'static str, imports: &'static [&'static str]) -> Crate {
    Crate { name, imports, tests: &[] }
}

/// Crates whose files import each other in cycles, with the size of the largest.
///
/// A bound may only be lowered.
const LARGEST_CYCLES: &[(&str, usize)] = &[("engine", 3), ("llm", 2)];

/// Returns the differences between the imports of packages and the table.
fn faults(packages: &[Value], crates: &[Crate]) -> Vec<String> {
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = packages.iter().map(name).collect();
    let mut faults = Vec::new();
    for entry in crates.iter().filter(|entry| !names.contains(entry.name)) {
        faults.push(format!("`{}` is in the table but not in the workspace", entry.name));
    }
    for package in packages {
        let own = name(package);
        let Some(entry) = crates.iter().find(|entry| entry.name == own) else {
            faults.push(format!("`{own}` is in the workspace but not in the table"));
            continue;
        };
        let mut unused: BTreeSet<&str> = entry.imports.iter().copied().collect();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = name(dependency);
            if !names.contains(&other) {
                continue;
            }
            let is_for_tests = dependency["kind"] == "dev";
            let may = |allowed: &[&str]| allowed.contains(&other.as_str());
            let tests_may = is_for_tests && (may(entry.tests) || may(FOR_ALL_TESTS));
            if !is_for_tests {
                unused.remove(other.as_str());
            }
            if !may(entry.imports) && !tests_may {
                let whose = if is_for_tests { "'s tests" } else { "" };
                faults.push(format!("`{own}`{whose} may not import `{other}`"));
            }
        }
        faults.extend(unused.iter().map(|other| format!("`{own}` does not import `{other}`")));
    }
    faults
}

#[test]
fn every_crate_imports_what_the_table_says() {
    assert_eq!(faults(&crate::packages(), CRATES), [""; 0]);
}

/// Returns the names and imports of the crates in the table of ARCHITECTURE.md.
fn documented(text: &str) -> Vec<(String, Vec<String>)> {
    let table = text.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let imports = cells.last().unwrap().split(',').map(str::trim).filter(|name| !name.is_empty());
        (cells[0].trim_matches('`').to_owned(), imports.map(str::to_owned).collect())
    };
    rows.map(row).collect()
}

#[test]
fn the_architecture_lists_the_imports_of_every_crate() {
    let short = |name: &str| name.strip_prefix("codewright-").unwrap_or(name).to_owned();
    let own = |entry: &Crate| (short(entry.name), entry.imports.iter().map(|name| short(name)).collect());
    let mut expected: Vec<(String, Vec<String>)> = CRATES.iter().map(own).collect();
    let mut found = documented(&std::fs::read_to_string(crate::root().join("ARCHITECTURE.md")).unwrap());
    for rows in [&mut expected, &mut found] {
        rows.iter_mut().for_each(|(_, imports)| imports.sort());
        rows.sort();
    }
    assert_eq!(found, expected, "update the table of crates in ARCHITECTURE.md");
}

#[test]
fn files_import_each_other_in_small_cycles() {
    for (name, bound) in LARGEST_CYCLES {
        let cycle = largest_cycle(&imports(name));
        let files: Vec<_> = cycle.iter().map(|module| module.join("::")).collect();
        assert_eq!(files.len(), *bound, "the largest cycle of `{name}`: {files:?}");
    }
}

#[track_caller]
fn check(packages: Value, expected: &[&str]) {
    let crates = [
        package("codewright-proto", &[]),
        Crate { name: "codewright-tools", imports: &["codewright-proto"], tests: &["codewright-client"] },
    ];
    assert_eq!(faults(packages.as_array().unwrap(), &crates), expected);
}

fn two_crates(tools: Value) -> Value {
    serde_json::json!([
        {"name": "codewright-proto", "dependencies": [{"name": "serde", "kind": null}]},
        {"name": "codewright-tools", "dependencies": tools},
    ])
}

#[test]
fn an_import_that_is_not_in_the_table_is_found() {
    let mut packages = two_crates(serde_json::json!([{"name": "codewright-proto", "kind": null}]));
    check(packages.clone(), &[]);
    packages[0]["dependencies"][0]["name"] = "codewright-tools".into();
    check(packages.clone(), &["`codewright-proto` may not import `codewright-tools`"]);
    packages[0]["dependencies"][0]["kind"] = "dev".into();
    check(packages, &["`codewright-proto`'s tests may not import `codewright-tools`"]);
}

#[test]
fn an_import_that_does_not_exist_is_found() {
    check(two_crates(serde_json::json!([])), &["`codewright-tools` does not import `codewright-proto`"]);
}

#[test]
fn a_crate_for_tests_is_not_for_the_program() {
    let crates = [package("codewright-testkit", &[]), package("codewright-tools", &[])];
    let packages = |kind: Value| {
        serde_json::json!([
            {"name": "codewright-testkit", "dependencies": []},
            {"name": "codewright-tools", "dependencies": [{"name": "codewright-testkit", "kind": kind}]},
        ])
    };
    let found = |kind: Value| faults(packages(kind).as_array().unwrap(), &crates);
    assert_eq!(found("dev".into()), [""; 0]);
    assert_eq!(found(Value::Null), ["`codewright-tools` may not import `codewright-testkit`"]);
}

#[test]
fn the_table_and_the_workspace_have_the_same_crates() {
    let mut packages = two_crates(serde_json::json!([]));
    packages[1]["name"] = "codewright-other".into();
    check(
        packages,
        &[
            "`codewright-tools` is in the table but not in the workspace",
            "`codewright-other` is in the workspace but not in the table",
        ],
    );
}
