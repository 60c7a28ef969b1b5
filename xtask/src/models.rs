//! Replaces the embedded model catalog.
//!
//! Reads the `api.json` of models.dev, writes the two data files of `crates/llm` and prints the changes. The same
//! input gives the same bytes.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use codewright_llm::catalog::{Catalog, LIMIT_BYTES};
use flate2::read::GzDecoder;

/// The crate with a copy of the catalog, and the path of the copy in it.
const CRATE: &str = "oxicode-catalog";
const SNAPSHOT: &str = "data/catalog/_snapshot.json.gz";
/// The number of names to print of each kind of change.
const SHOWN: usize = 20;

pub(crate) fn main(rest: &[String]) -> Result<()> {
    let file = match rest {
        [flag] if flag == "--from-crate" => from_crate()?,
        [file] if !file.starts_with('-') => PathBuf::from(file),
        _ => bail!("`cargo xtask models` needs a file, or `--from-crate`"),
    };
    let fresh = Catalog::read(text(&file)?).with_context(|| format!("in `{}`", file.display()))?;
    let report = changes(&names(&Catalog::embedded())?, &names(&fresh)?);
    let (providers, models) = fresh.pack()?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/llm/data");
    std::fs::write(data.join("providers.tsv"), &providers).context("writing providers.tsv")?;
    std::fs::write(data.join("models.bin"), &models).context("writing models.bin")?;
    let bytes = providers.len() + models.len();
    writeln!(std::io::stdout(), "{report}{bytes} bytes written to crates/llm/data")?;
    Ok(())
}

/// Returns the text of a file, which may be gzipped.
fn text(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("reading `{}`", file.display()))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(bytes).context("the file is not UTF-8");
    }
    let mut text = String::new();
    GzDecoder::new(bytes.as_slice()).take(LIMIT_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the path of the snapshot in the newest version of the crate. Cargo downloads it and checks its hash.
fn from_crate() -> Result<PathBuf> {
    let scratch = tempfile::tempdir()?;
    let manifest = scratch.path().join("Cargo.toml");
    let package = format!(
        "[package]\nname = \"scratch\"\nversion = \"0.0.0\"\n[lib]\npath = \"lib.rs\"\n[dependencies]\n{CRATE} = \"*\"\n[workspace]\n"
    );
    std::fs::write(&manifest, package)?;
    std::fs::write(scratch.path().join("lib.rs"), "")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let output = cargo.output().context("running cargo")?;
    if !output.status.success() {
        bail!("cargo could not fetch `{CRATE}`: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    let found = packages.iter().find(|package| package["name"] == CRATE);
    let manifest =
        found.and_then(|package| package["manifest_path"].as_str()).context("the crate is missing")?;
    Ok(Path::new(manifest).parent().context("the manifest has no parent directory")?.join(SNAPSHOT))
}

/// Returns a description of every model by `provider/model`.
fn names(catalog: &Catalog) -> Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    for provider in catalog.providers() {
        for model in catalog.models(&provider.id)? {
            names.insert(format!("{}/{}", provider.id, model.id), format!("{model:?}"));
        }
    }
    Ok(names)
}

fn changes(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> String {
    let added: Vec<_> = new.keys().filter(|name| !old.contains_key(*name)).collect();
    let removed: Vec<_> = old.keys().filter(|name| !new.contains_key(*name)).collect();
    let changed: Vec<_> = new
        .iter()
        .filter(|(name, model)| old.get(*name).is_some_and(|old| old != *model))
        .map(|(name, _)| name)
        .collect();
    let mut report = format!("{} models, {} before\n", new.len(), old.len());
    for (what, names) in [("added", added), ("removed", removed), ("changed", changed)] {
        report.push_str(&format!("{what}: {}\n", names.len()));
        for name in names.iter().take(SHOWN) {
            report.push_str(&format!("  {name}\n"));
        }
        if names.len() > SHOWN {
            report.push_str(&format!("  and {} more\n", names.len() - SHOWN));
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_the_changes() {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, model)| ((*name).to_owned(), (*model).to_owned())).collect()
        };
        let report = changes(
            &map(&[("a/1", "x"), ("a/2", "x"), ("a/3", "x")]),
            &map(&[("a/2", "y"), ("a/3", "x"), ("b/1", "x")]),
        );
        assert_eq!(report, "3 models, 3 before\nadded: 1\n  b/1\nremoved: 1\n  a/1\nchanged: 1\n  a/2\n");
    }
}
