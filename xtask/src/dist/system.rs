//! The packages of Linux systems, made by nfpm: deb, rpm and Arch Linux from the program for glibc, apk from the one for musl.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Release;
use super::contents::Contents;
use super::target::Target;

/// Writes the packages of a system. Without nfpm it says that it writes none.
pub(super) fn write(release: &Release, target: &Target, contents: &Contents) -> Result<()> {
    let Some((processor, formats)) = target.linux else { return Ok(()) };
    if Command::new("nfpm").arg("--version").output().is_err() {
        say_skipped();
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).map(|()| path)
    };
    let mut files = String::new();
    let mut add = |from: &str, to: &str, mode: &str| {
        files.push_str(&format!(
            "  - src: {}\n    dst: {to}\n    file_info: {{ mode: {mode}, mtime: {} }}\n",
            folder.path().join(from).display(),
            release.date
        ));
    };
    write("codewright", &contents.program)?;
    add("codewright", "/usr/bin/codewright", "0o755");
    write("copyright", &[contents.licence.as_slice(), b"\n", &contents.licences].concat())?;
    add("copyright", "/usr/share/doc/codewright/copyright", "0o644");
    for (name, bytes) in &contents.man {
        write(name, bytes)?;
        add(name, &format!("/usr/share/man/man1/{name}"), "0o644");
    }
    let places = [
        ("codewright.bash", "/usr/share/bash-completion/completions/codewright"),
        ("_codewright", "/usr/share/zsh/vendor-completions/_codewright"),
        ("codewright.fish", "/usr/share/fish/vendor_completions.d/codewright.fish"),
    ];
    for (name, place) in places {
        if let Some((_, bytes)) = contents.completions.iter().find(|(found, _)| found == name) {
            write(name, bytes)?;
            add(name, place, "0o644");
        }
    }
    let text = format!(
        "name: codewright\narch: {processor}\nplatform: linux\nversion: {version}\nsection: devel\npriority: optional\n\
         maintainer: The Codewright project <codewright@example.invalid>\n\
         description: |-\n  AI coding agent for the terminal\n  Reads a codebase, edits it and runs commands with the model that you choose.\n\
         license: MIT\nmtime: {time}\nrecommends:\n  - bubblewrap\n  - git\n\
         overrides:\n{needs}contents:\n{files}",
        version = release.version,
        time = release.date,
        needs = needs(contents.glibc),
    );
    let plan = write("nfpm.yaml", text.as_bytes())?;
    for format in formats {
        let output = Command::new("nfpm")
            .args(["package", "--packager", format, "--config"])
            .arg(&plan)
            .arg("--target")
            .arg(&release.out)
            .env("SOURCE_DATE_EPOCH", release.time.to_string())
            .output()
            .context("cannot start nfpm")?;
        ensure!(
            output.status.success(),
            "nfpm cannot make {format}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// What the packages need, in the names of each system. A static program needs certificates only.
fn needs(glibc: Option<u32>) -> String {
    let Some(minor) = glibc else {
        return "  apk:\n    depends:\n      - ca-certificates\n".to_owned();
    };
    let lists = [
        ("deb", [format!("libc6 (>= 2.{minor})"), "libgcc-s1".to_owned()]),
        ("rpm", [format!("glibc >= 2.{minor}"), "libgcc".to_owned()]),
        ("archlinux", [format!("glibc>=2.{minor}"), "gcc-libs".to_owned()]),
    ];
    let text = lists.map(|(format, libraries)| {
        let libraries = libraries.map(|library| format!("      - {library}\n")).concat();
        format!("  {format}:\n    depends:\n      - ca-certificates\n{libraries}")
    });
    text.concat()
}

/// Says that packages are missing.
fn say_skipped() {
    use std::io::Write as _;

    // Nobody can be told if standard error is closed.
    drop(writeln!(
        std::io::stderr(),
        "skipped: nfpm is not installed, so there is no deb, rpm, apk and Arch package"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_need_the_libraries_that_the_program_loads() {
        let needs = needs(Some(36));
        for library in ["libc6 (>= 2.36)", "libgcc-s1", "glibc >= 2.36", "glibc>=2.36", "gcc-libs"] {
            assert!(needs.contains(&format!("      - {library}\n")), "{needs}");
        }
        assert!(!super::needs(None).contains("glibc"));
    }
}
