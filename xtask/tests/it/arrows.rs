//! Which room may look into which.
//!
//! Arrows never point up: what a room may import is the table below, and a new
//! arrow is a decision that is made here, in sight.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::layers::{imports, largest_cycle};

/// A room, what it may import, and what its tests may import beside that.
struct Room {
    name: &'static str,
    imports: &'static [&'static str],
    tests: &'static [&'static str],
}

/// Every room's tests may import these.
const FOR_ALL_TESTS: &[&str] = &["codewright-testkit", "codewright-scripted"];

const ROOMS: &[Room] = &[
    room("codewright-proto", &[]),
    room("codewright-scripted", &[]),
    room("codewright-config", &["codewright-proto"]),
    room("codewright-store", &["codewright-proto"]),
    room("codewright-llm", &["codewright-proto"]),
    room("codewright-telemetry", &["codewright-proto"]),
    room("codewright-workspace", &["codewright-proto"]),
    room("codewright-snapshot", &["codewright-proto", "codewright-workspace"]),
    room("codewright-tools", &["codewright-proto", "codewright-workspace"]),
    room(
        "codewright-engine",
        &[
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
    Room {
        name: "codewright-server",
        imports: &["codewright-proto", "codewright-engine"],
        // A server is tried by its own client, on an engine that has read a configuration.
        tests: &["codewright-client", "codewright-config"],
    },
    room("codewright-client", &["codewright-proto"]),
    room("codewright-tui", &["codewright-proto", "codewright-client"]),
    room(
        "codewright",
        &[
            "codewright-proto",
            "codewright-config",
            "codewright-store",
            "codewright-llm",
            "codewright-workspace",
            "codewright-tools",
            "codewright-engine",
            "codewright-server",
            "codewright-client",
            "codewright-tui",
            "codewright-scripted",
        ],
    ),
    room(
        "codewright-testkit",
        &["codewright-proto", "codewright-store", "codewright-client", "codewright-scripted"],
    ),
    room(
        "xtask",
        &[
            "codewright-proto",
            "codewright-config",
            "codewright-llm",
            "codewright-store",
            "codewright-server",
            "codewright-snapshot",
            "codewright-scripted",
            "codewright-testkit",
            "codewright-tools",
        ],
    ),
];

const fn room(name: &'static str, imports: &'static [&'static str]) -> Room {
    Room { name, imports, tests: &[] }
}

/// Crates whose files import each other in cycles, with the size of the largest.
///
/// A bound may only be lowered.
const LARGEST_CYCLES: &[(&str, usize)] = &[("engine", 51), ("llm", 2)];

/// The arrows of these packages that the table does not allow, and the packages or rooms the other lacks.
fn faults(packages: &[Value], rooms: &[Room]) -> Vec<String> {
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = packages.iter().map(name).collect();
    let mut faults = Vec::new();
    for room in rooms.iter().filter(|room| !names.contains(room.name)) {
        faults.push(format!("`{}` is in the table but not in the workspace", room.name));
    }
    for package in packages {
        let own = name(package);
        let Some(room) = rooms.iter().find(|room| room.name == own) else {
            faults.push(format!("`{own}` is in the workspace but not in the table"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = name(dependency);
            if !names.contains(&other) {
                continue;
            }
            let is_for_tests = dependency["kind"] == "dev";
            let may = |allowed: &[&str]| allowed.contains(&other.as_str());
            let tests_may = is_for_tests && (may(room.tests) || may(FOR_ALL_TESTS));
            if !may(room.imports) && !tests_may {
                let whose = if is_for_tests { "'s tests" } else { "" };
                faults.push(format!("`{own}`{whose} may not import `{other}`"));
            }
        }
    }
    faults
}

#[test]
fn no_room_looks_where_it_may_not() {
    assert_eq!(faults(&crate::packages(), ROOMS), [""; 0]);
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
    let rooms = [
        room("codewright-proto", &[]),
        Room { name: "codewright-tools", imports: &["codewright-proto"], tests: &["codewright-client"] },
    ];
    assert_eq!(faults(packages.as_array().unwrap(), &rooms), expected);
}

fn two_rooms(tools: Value) -> Value {
    serde_json::json!([
        {"name": "codewright-proto", "dependencies": [{"name": "serde", "kind": null}]},
        {"name": "codewright-tools", "dependencies": tools},
    ])
}

#[test]
fn an_arrow_that_is_not_in_the_table_is_found() {
    let mut packages = two_rooms(serde_json::json!([{"name": "codewright-proto", "kind": null}]));
    check(packages.clone(), &[]);
    packages[0]["dependencies"][0]["name"] = "codewright-tools".into();
    check(packages.clone(), &["`codewright-proto` may not import `codewright-tools`"]);
    packages[0]["dependencies"][0]["kind"] = "dev".into();
    check(packages, &["`codewright-proto`'s tests may not import `codewright-tools`"]);
}

#[test]
fn a_room_for_tests_is_not_a_room_for_the_program() {
    let rooms = [room("codewright-testkit", &[]), room("codewright-tools", &[])];
    let packages = |kind: Value| {
        serde_json::json!([
            {"name": "codewright-testkit", "dependencies": []},
            {"name": "codewright-tools", "dependencies": [{"name": "codewright-testkit", "kind": kind}]},
        ])
    };
    let found = |kind: Value| faults(packages(kind).as_array().unwrap(), &rooms);
    assert_eq!(found("dev".into()), [""; 0]);
    assert_eq!(found(Value::Null), ["`codewright-tools` may not import `codewright-testkit`"]);
}

#[test]
fn the_table_and_the_workspace_have_the_same_rooms() {
    let mut packages = two_rooms(serde_json::json!([]));
    packages[1]["name"] = "codewright-shed".into();
    check(
        packages,
        &[
            "`codewright-tools` is in the table but not in the workspace",
            "`codewright-shed` is in the workspace but not in the table",
        ],
    );
}
