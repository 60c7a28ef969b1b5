//! What the packages of a system contain: the program, man pages, completions, licences.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Release;
use super::archive::Entry;
use super::target::{self, Target};

/// The shells with completions, and the names of the files.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "codewright.bash"),
    ("zsh", "_codewright"),
    ("fish", "codewright.fish"),
    ("powershell", "codewright.ps1"),
    ("elvish", "codewright.elv"),
];

/// The content of packages.
pub(crate) struct Contents {
    pub(crate) program: Vec<u8>,
    /// Names and contents.
    pub(crate) man: Vec<(String, Vec<u8>)>,
    pub(crate) completions: Vec<(String, Vec<u8>)>,
    pub(crate) licence: Vec<u8>,
    pub(crate) licences: Vec<u8>,
    readme: Vec<u8>,
    folder: String,
    /// The name of the program.
    name: String,
    /// The oldest glibc that the program runs with: the number after `2.`.
    pub(crate) glibc: Option<u32>,
}

impl Contents {
    /// Reads the program and lets it write its man pages and completions. One for another system gets those of this
    /// machine's, which are the same.
    pub(crate) fn of(release: &Release, target: &Target, program: &Path) -> Result<Self> {
        let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let (man, completions) = if target.triple == target::of_this_machine()?.triple {
            check_version(program, &release.version)?;
            (man(program)?, completions(program)?)
        } else {
            (Vec::new(), Vec::new())
        };
        let read =
            |name: &str| fs::read(release.root.join(name)).with_context(|| format!("cannot read {name}"));
        Ok(Self {
            glibc: glibc(&bytes),
            program: bytes,
            man,
            completions,
            licence: read("LICENSE")?,
            licences: super::sbom::licences(&release.root)?.into_bytes(),
            readme: read("README.md")?,
            name: target.program(),
            folder: format!("codewright-{}-{}", release.version, target.triple),
        })
    }

    /// The entries of the archive.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let folder = &self.folder;
        let mut entries = vec![
            Entry::program(format!("{folder}/{}", self.name), self.program.clone()),
            Entry::file(format!("{folder}/LICENSE"), self.licence.clone()),
            Entry::file(format!("{folder}/LICENCES-OF-LIBRARIES.txt"), self.licences.clone()),
            Entry::file(format!("{folder}/README.md"), self.readme.clone()),
        ];
        for (kind, files) in [("man", &self.man), ("completions", &self.completions)] {
            entries.extend(
                files
                    .iter()
                    .map(|(name, bytes)| Entry::file(format!("{folder}/{kind}/{name}"), bytes.clone())),
            );
        }
        entries
    }
}

fn check_version(program: &Path, version: &str) -> Result<()> {
    let output = Command::new(program).arg("--version").output().context("the program does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(text.starts_with(version), "the program has version {} instead of {version}", text.trim());
    Ok(())
}

fn man(program: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = tempfile::tempdir()?;
    let status = Command::new(program).arg("man").arg(folder.path()).status()?;
    ensure!(status.success(), "the program cannot write its man pages");
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    pages.sort();
    Ok(pages)
}

fn completions(program: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let script = |(shell, name): (&str, &str)| {
        let output = Command::new(program).args(["completion", shell]).output()?;
        ensure!(output.status.success(), "the program has no completions for {shell}");
        Ok((name.to_owned(), output.stdout))
    };
    SHELLS.into_iter().map(script).collect()
}

/// The oldest glibc that a program runs with: the newest version that its symbols name, or the first version that reads
/// packed relocations.
pub(crate) fn glibc(program: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"GLIBC_2.";
    const PACKED: (&[u8], u32) = (b"GLIBC_ABI_DT_RELR\0", 36);
    let versions =
        program.windows(MARK.len() + 3).filter(|window| window.starts_with(MARK)).filter_map(|window| {
            let digits: Vec<u8> =
                window[MARK.len()..].iter().copied().take_while(u8::is_ascii_digit).collect();
            String::from_utf8(digits).ok()?.parse().ok()
        });
    let packed = program.windows(PACKED.0.len()).any(|window| window == PACKED.0).then_some(PACKED.1);
    versions.chain(packed).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_counts() {
        assert_eq!(glibc(b"\0GLIBC_2.17\0GLIBC_2.4\0GLIBC_2.34\0x"), Some(34));
        assert_eq!(glibc(b"\0GLIBC_2.34\0GLIBC_ABI_DT_RELR\0"), Some(36));
        assert_eq!(glibc(b"static program"), None);
    }
}
