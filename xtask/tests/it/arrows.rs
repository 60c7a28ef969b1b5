//! The layers of the workspace: which crate may import which, the layers of `engine`'s modules, and how large import
//! cycles of modules may be.
//!
//! The table of crates is exact: a new dependency must be added here and to the table in ARCHITECTURE.md.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::layers::{Imports, imports, largest_cycle};

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
    package("codewright-notify", &[]),
    package("codewright-proto", &[]),
    package("codewright-scripted", &[]),
    package("codewright-config", &["codewright-proto"]),
    package("codewright-store", &["codewright-proto"]),
    package("codewright-llm", &["codewright-proto"]),
    package("codewright-telemetry", &["codewright-proto"]),
    package("codewright-sandbox", &["codewright-notify"]),
    package("codewright-proxy", &[]),
    package("codewright-workspace", &["codewright-sandbox"]),
    package("codewright-formatter", &["codewright-workspace"]),
    package("codewright-snapshot", &["codewright-proto", "codewright-workspace"]),
    package("codewright-permission", &["codewright-proto", "codewright-config", "codewright-workspace"]),
    package("codewright-tools", &["codewright-permission", "codewright-workspace"]),
    package("codewright-acp-client", &["codewright-workspace"]),
    package("codewright-lsp", &["codewright-workspace"]),
    package("codewright-mcp", &["codewright-workspace"]),
    package("codewright-packages", &["codewright-workspace"]),
    package("codewright-plugins", &["codewright-workspace"]),
    package(
        "codewright-engine",
        &[
            "codewright-memory",
            "codewright-proto",
            "codewright-config",
            "codewright-store",
            "codewright-llm",
            "codewright-permission",
            "codewright-proxy",
            "codewright-workspace",
            "codewright-formatter",
            "codewright-snapshot",
            "codewright-tools",
            "codewright-telemetry",
            "codewright-acp-client",
            "codewright-lsp",
            "codewright-mcp",
            "codewright-packages",
            "codewright-plugins",
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
    package("codewright-acp", &["codewright-proto", "codewright-acp-client", "codewright-client"]),
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
            "codewright-acp",
            "codewright-scripted",
        ],
    ),
    package("codewright-testkit", &["codewright-proto", "codewright-client", "codewright-scripted"]),
    package(
        "xtask",
        &[
            "codewright-config",
            "codewright-proto",
            "codewright-llm",
            "codewright-engine",
            "codewright-store",
            "codewright-snapshot",
            "codewright-scripted",
            "codewright-testkit",
            "codewright-tools",
            "codewright-workspace",
        ],
    ),
];

const fn package(name: &'static str, imports: &'static [&'static str]) -> Crate {
    Crate { name, imports, tests: &[] }
}

/// A layer of modules. An entry stands for a module and for those inside it that have no entry.
struct Layer {
    name: &'static str,
    modules: &'static [&'static str],
}

/// The layers of `engine`, lowest first. A module imports only modules of the same layer and of lower ones.
const ENGINE: &[Layer] = &[
    // Pure decisions and conversions, and services without knowledge of sessions or directories.
    layer(
        "values",
        &[
            "acp::model",
            "acp::prompt",
            "address",
            "commands::template",
            "database",
            "error",
            "instance::project_id",
            "known",
            "mcp::catalogue",
            "mcp::economy",
            "mcp::search",
            "mcp::wrapped",
            "models",
            "nodes::settings",
            "outputs",
            "patch",
            "permission",
            "plugins::access",
            "plugins::changes",
            "prompts",
            "redact",
            "remote",
            "skill_urls",
            "request",
            "run::compact::plan",
            "sandbox::git",
            "sandbox::hiding",
            "sandbox::homes",
            "sandbox::paths",
            "run::compact::prune",
            "run::compact::render",
            "run::next",
            "run::prompt",
            "run::refusal",
            "run::retry",
            "run::structured",
            "session::revert::point",
            "session_file",
            "telemetry",
            "toolbox::repair",
            "toolbox::selection",
            "transfer::sanitize",
            "trial",
            "users",
            "web",
            "zone",
        ],
    ),
    // Tables, locks and open directories: the fields of `Inner`.
    layer(
        "state",
        &[
            "acp",
            "attempt",
            "commands",
            "credential",
            "documents",
            "extension",
            "hosts::table",
            "instance",
            "journal",
            "lsp",
            "hooks",
            "mcp",
            "nodes",
            "packages",
            "plugins",
            "permission::approval",
            "permission::gate",
            "permission::reading",
            "pty",
            "question",
            "run::files",
            "run::recorder",
            "run::table",
            "session::locks",
            "session::row_locks",
            "subagent",
            "toolbox",
            "trust",
            "worktrees",
        ],
    ),
    // `Inner`, which contains the state, and the handles through which it is used.
    layer("handles", &["inner", "interface"]),
    // Changes of stored sessions.
    layer(
        "records",
        &[
            "acp::host",
            "acp::kept",
            "acp::servers",
            "batch",
            "extension::events",
            "extension::open",
            "hooks::fire",
            "hosts",
            "lsp::host",
            "lsp::install",
            "mcp::commands",
            "mcp::host",
            "mcp::instructions",
            "mcp::kept",
            "mcp::resources",
            "mcp::sample",
            "mcp::sign_in",
            "mcp::tool",
            "nodes::admission",
            "packages::install",
            "packages::runner",
            "plugins::configure",
            "plugins::current",
            "plugins::host",
            "plugins::open",
            "plugins::runtime",
            "plugins::transform",
            "permission::session",
            "run::compact::trigger",
            "run::message",
            "run::recover",
            "run::status",
            "run::stop",
            "run::wake",
            "sandbox",
            "session",
            "toolbox::check",
            "toolbox::cx",
            "transfer",
            "trust::operations",
            "users::quota",
        ],
    ),
    layer("admission", &["admit"]),
    // The loop and everything that it runs.
    layer("turns", &["nodes::takeover", "run", "subagent::handover", "toolbox::call", "trust::question"]),
    // The operations of clients.
    layer(
        "faces",
        &[
            "attempt::operations",
            "commands::prompt",
            "credential::operations",
            "debug",
            "engine",
            "generate",
            "interface::events",
            "interface::nodes",
            "interface::permissions",
            "interface::providers",
            "interface::questions",
            "interface::sessions",
            "journal::operations",
            "journal::reading",
            "lsp::operations",
            "mcp::operations",
            "packages::operations",
            "plugins::operations",
            "plugins::sign_in",
            "permission::addition",
            "permission::client",
            "projects",
            "pty::operations",
            "review",
            "sandbox::report",
            "session::shell",
            "session::summarize",
            "settings",
            "users::operations",
            "worktrees::create",
            "worktrees::place",
            "worktrees::remove",
        ],
    ),
];

const fn layer(name: &'static str, modules: &'static [&'static str]) -> Layer {
    Layer { name, modules }
}

/// Returns the layer of a module: that of its longest entry.
fn layer_of(layers: &[Layer], module: &[String]) -> Option<usize> {
    let entries = (1..=module.len()).rev().map(|end| module[..end].join("::"));
    entries
        .into_iter()
        .find_map(|entry| layers.iter().position(|layer| layer.modules.iter().any(|module| *module == entry)))
}

/// Returns the imports of higher layers, the modules without a layer, and the entries without a module.
fn layer_faults(imports: &Imports, layers: &[Layer]) -> Vec<String> {
    let mut faults = Vec::new();
    for (module, others) in imports {
        let name = module.join("::");
        let Some(own) = layer_of(layers, module) else {
            faults.push(format!("`{name}` has no layer"));
            continue;
        };
        for other in others {
            let above = layer_of(layers, other).filter(|above| *above > own);
            if let Some(above) = above {
                let (own, above, other) = (layers[own].name, layers[above].name, other.join("::"));
                faults.push(format!("`{name}` ({own}) may not import `{other}` ({above})"));
            }
        }
    }
    for entry in layers.iter().flat_map(|layer| layer.modules) {
        if !imports.keys().any(|module| module.join("::") == *entry) {
            faults.push(format!("there is no module `{entry}`"));
        }
        if layers.iter().filter(|layer| layer.modules.contains(entry)).count() > 1 {
            faults.push(format!("`{entry}` is in two layers"));
        }
    }
    faults
}

/// Crates with a bound for the largest cycle of files that import each other. 0 means that there is none.
///
/// A bound may only be lowered.
const LARGEST_CYCLES: &[(&str, usize)] = &[("engine", 0), ("llm", 2)];

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

#[test]
fn modules_of_the_engine_import_no_higher_layer() {
    assert_eq!(layer_faults(&imports("engine"), ENGINE), [""; 0]);
}

#[test]
fn the_architecture_lists_the_layers_of_the_engine() {
    let text = std::fs::read_to_string(crate::root().join("ARCHITECTURE.md")).unwrap();
    let table = text.lines().skip_while(|line| !line.starts_with("| layer |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let found: Vec<_> = rows.map(|line| line.split('|').nth(1).unwrap().trim().trim_matches('`')).collect();
    let expected: Vec<_> = ENGINE.iter().map(|layer| layer.name).collect();
    assert_eq!(found, expected, "update the table of layers in ARCHITECTURE.md");
}

#[test]
fn an_import_of_a_higher_layer_is_found() {
    let path = |name: &str| -> Vec<String> { name.split("::").map(str::to_owned).collect() };
    let layers = [layer("low", &["a", "b::x"]), layer("high", &["b"])];
    let faults = |edges: &[(&str, &[&str])]| {
        let imports = edges.iter().map(|(from, to)| (path(from), to.iter().map(|to| path(to)).collect()));
        layer_faults(&imports.collect(), &layers)
    };
    assert_eq!(
        faults(&[("a", &["b::x::y"]), ("b", &["a", "b::x"]), ("b::x", &[]), ("b::x::y", &["a"])]),
        [""; 0]
    );
    assert_eq!(
        faults(&[("a", &["b"]), ("b", &[]), ("b::x", &["b::z"]), ("b::z", &[]), ("c", &[])]),
        [
            "`a` (low) may not import `b` (high)",
            "`b::x` (low) may not import `b::z` (high)",
            "`c` has no layer"
        ]
    );
    assert_eq!(faults(&[("a", &[]), ("b", &[])]), ["there is no module `b::x`"]);
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
