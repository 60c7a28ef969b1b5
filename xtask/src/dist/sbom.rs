//! What the program is made of: a list for machines (CycloneDX) and the licences for people.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Release;

/// Writes the list of libraries.
pub(super) fn write(release: &Release) -> Result<()> {
    let components: Vec<Value> = libraries(&release.root)?
        .into_iter()
        .map(|((name, version), licence)| {
            let address = format!("pkg:cargo/{name}@{version}");
            json!({
                "type": "library",
                "bom-ref": address,
                "name": name,
                "version": version,
                "purl": address,
                "licenses": [{ "expression": licence }],
            })
        })
        .collect();
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "name": "codewright", "version": release.version },
        },
        "components": components,
    });
    release.write("sbom.cdx.json", &serde_json::to_vec_pretty(&list)?)?;
    Ok(())
}

/// The names, versions and licences of the libraries, as a text.
pub(super) fn licences(root: &Path) -> Result<String> {
    let lines = libraries(root)?
        .into_iter()
        .map(|((name, version), licence)| format!("{name} {version}: {licence}\n"));
    Ok(format!("The program contains these libraries.\n\n{}", lines.collect::<String>()))
}

/// The libraries of the program, with their licences.
fn libraries(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let arguments = ["metadata", "--locked", "--format-version", "1", "--filter-platform"];
    let output = Command::new(cargo)
        .args(arguments)
        .arg("x86_64-unknown-linux-gnu")
        .arg("--manifest-path")
        .arg(root.join("crates/codewright/Cargo.toml"))
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo cannot list the libraries");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    let program =
        packages.iter().find(|package| package["name"] == "codewright").context("the program is missing")?;
    let mut open = vec![program["id"].as_str().unwrap_or_default()];
    let mut reached = std::collections::BTreeSet::new();
    while let Some(id) = open.pop() {
        if !reached.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| node["deps"].as_array()).flatten() {
            // Libraries of tests and of build scripts are not in the program.
            let kinds = dependency["dep_kinds"].as_array();
            if kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null())) {
                open.extend(dependency["pkg"].as_str());
            }
        }
    }
    let found = packages.iter().filter(|package| {
        package["source"].is_string() && package["id"].as_str().is_some_and(|id| reached.contains(id))
    });
    Ok(found
        .map(|package| ((text(&package["name"]), text(&package["version"])), text(&package["license"])))
        .collect())
}
