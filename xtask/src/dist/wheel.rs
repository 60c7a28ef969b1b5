//! The package for Python's installers: `uvx codewright`, `pipx install codewright`.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Release;
use super::archive::{Entry, zip};
use super::contents::Contents;
use super::target::Target;

/// The oldest glibc that wheels name if the program names none.
const OLDEST_GLIBC: u32 = 17;

/// Writes the wheel of a system. It has the program as a script and no Python.
pub(super) fn write(release: &Release, target: &Target, contents: &Contents) -> Result<()> {
    let glibc = contents.glibc.unwrap_or(OLDEST_GLIBC).max(OLDEST_GLIBC);
    let platform = target.wheel.replace("GLIBC", &format!("2_{glibc}"));
    // A version such as `1.0.0-rc.1` is `1.0.0rc1` there.
    let version = release.version.replace("-rc.", "rc").replace("-beta.", "b").replace("-alpha.", "a");
    let folder = format!("codewright-{version}.dist-info");
    let metadata = format!(
        "Metadata-Version: 2.4\nName: codewright\nVersion: {version}\n\
         Summary: An AI coding agent for your terminal.\nLicense-Expression: MIT\nLicense-File: LICENSE\n"
    );
    let tags = format!(
        "Wheel-Version: 1.0\nGenerator: codewright\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
    );
    let mut files = vec![
        Entry::program(
            format!("codewright-{version}.data/scripts/{}", target.program()),
            contents.program.clone(),
        ),
        Entry::file(format!("{folder}/METADATA"), metadata),
        Entry::file(format!("{folder}/WHEEL"), tags),
        Entry::file(format!("{folder}/licenses/LICENSE"), contents.licence.clone()),
        Entry::file(format!("{folder}/licenses/LICENCES-OF-LIBRARIES.txt"), contents.licences.clone()),
    ];
    let mut record = String::new();
    for file in &files {
        let digest = ring::digest::digest(&ring::digest::SHA256, &file.bytes);
        let digest = URL_SAFE_NO_PAD.encode(digest);
        record.push_str(&format!("{},sha256={digest},{}\n", file.path, file.bytes.len()));
    }
    record.push_str(&format!("{folder}/RECORD,,\n"));
    files.push(Entry::file(format!("{folder}/RECORD"), record));
    release.write(&format!("codewright-{version}-py3-none-{platform}.whl"), &zip(&files)?)?;
    Ok(())
}
