//! Files for package managers that download the archives, and the install script. All are made from the digests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::Release;

/// The templates below `packaging/templates`, and the names of the files.
const TEMPLATES: [(&str, &str); 5] = [
    ("install.sh", "install.sh"),
    ("homebrew.rb", "codewright.rb"),
    ("PKGBUILD", "PKGBUILD"),
    ("flake.nix", "flake.nix"),
    ("Containerfile", "Containerfile"),
];
/// The digest of an archive that this run did not make. No download has it, so an incomplete file installs nothing.
const MISSING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Writes the files.
pub(super) fn write(release: &Release, files: &BTreeMap<&str, PathBuf>, glibc: Option<u32>) -> Result<()> {
    let mut values = BTreeMap::from([
        ("VERSION".to_owned(), release.version.clone()),
        ("SOURCE".to_owned(), release.source.clone()),
        ("KEY".to_owned(), release.key.clone()),
        ("GLIBC".to_owned(), glibc.unwrap_or(17).to_string()),
    ]);
    for target in super::target::TARGETS {
        let digest = match files.get(target.triple) {
            Some(path) => super::digest(&fs::read(path)?),
            None => MISSING.to_owned(),
        };
        values.insert(format!("SHA256:{}", target.triple), digest);
    }
    for (template, name) in TEMPLATES {
        let path = release.root.join("packaging/templates").join(template);
        let mut text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for (key, value) in &values {
            text = text.replace(&format!("@{key}@"), value);
        }
        release.write(name, text.as_bytes())?;
    }
    Ok(())
}
