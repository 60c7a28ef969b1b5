//! Files for package managers that download the archives, and the install script. All are made from the digests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
/// Those for Windows, which a release has only together with the program for it.
const WINDOWS: [(&str, &str); 5] = [
    ("install.ps1", "install.ps1"),
    ("scoop.json", "codewright.json"),
    ("winget/version.yaml", "Codewright.Codewright.yaml"),
    ("winget/installer.yaml", "Codewright.Codewright.installer.yaml"),
    ("winget/locale.yaml", "Codewright.Codewright.locale.en-US.yaml"),
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
    let has_windows = files.keys().any(|triple| triple.contains("windows"));
    let windows = WINDOWS.iter().filter(|_| has_windows);
    for (template, name) in TEMPLATES.iter().chain(windows) {
        let text = fill(&release.root, template, &values)?;
        release.write(name, text.as_bytes())?;
    }
    Ok(())
}

/// A template with its values.
fn fill(root: &Path, template: &str, values: &BTreeMap<String, String>) -> Result<String> {
    let path = root.join("packaging/templates").join(template);
    let mut text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (key, value) in values {
        text = text.replace(&format!("@{key}@"), value);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLE: &str = "x86_64-pc-windows-msvc";

    fn filled(template: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut values: BTreeMap<String, String> = [
            ("VERSION", "1.2.3"),
            ("SOURCE", "https://host.invalid/releases"),
            ("KEY", "RWQ"),
            ("GLIBC", "17"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        for target in crate::dist::target::TARGETS {
            values.insert(format!("SHA256:{}", target.triple), "ab".repeat(32));
        }
        fill(root, template, &values).unwrap()
    }

    #[test]
    fn every_value_of_every_template_is_filled_in() {
        for (template, _) in TEMPLATES.iter().chain(&WINDOWS) {
            let text = filled(template);
            let open: Vec<_> = ["@VERSION", "@SOURCE", "@KEY", "@GLIBC", "@SHA256"]
                .into_iter()
                .filter(|mark| text.contains(mark))
                .collect();
            assert!(open.is_empty(), "{template}: {open:?}");
        }
    }

    #[test]
    fn package_managers_of_windows_find_the_program_in_the_archive() {
        let target = crate::dist::target::named(TRIPLE).unwrap();
        let archive = format!("https://host.invalid/releases/download/v1.2.3/{}", target.archive("1.2.3"));
        let folder = format!("codewright-1.2.3-{TRIPLE}");
        let scoop: serde_json::Value = serde_json::from_str(&filled("scoop.json")).unwrap();
        // Scoop requires the first three.
        assert_eq!(scoop["version"], "1.2.3");
        assert_eq!(scoop["license"], "MIT");
        assert_eq!(scoop["homepage"], "https://host.invalid/releases");
        assert_eq!(scoop["architecture"]["64bit"]["url"], archive.as_str());
        assert_eq!(scoop["architecture"]["64bit"]["extract_dir"], folder.as_str());
        assert_eq!(scoop["bin"], target.program().as_str());
        let winget = filled("winget/installer.yaml");
        for expected in [
            format!("    InstallerUrl: {archive}\n"),
            format!("  - RelativeFilePath: {folder}\\{}\n", target.program()),
            format!("    InstallerSha256: {}\n", "ab".repeat(32)),
        ] {
            assert!(winget.contains(&expected), "{winget}");
        }
        for (template, kind) in
            [("version", "version"), ("installer", "installer"), ("locale", "defaultLocale")]
        {
            let text = filled(&format!("winget/{template}.yaml"));
            for expected in [
                "PackageIdentifier: Codewright.Codewright",
                "PackageVersion: 1.2.3",
                &format!("ManifestType: {kind}"),
            ] {
                assert!(text.lines().any(|line| line == expected), "{template}: {expected}");
            }
        }
    }
}
