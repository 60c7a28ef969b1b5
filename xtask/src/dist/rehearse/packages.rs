//! The packages of Linux systems and the container image, installed into empty root file systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::super::contents::Contents;
use super::super::{Release, image, target};
use super::Report;

/// The directories and files that dpkg needs in a root.
const DPKG: [&str; 3] = ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"];
/// What an Arch package must contain.
const ARCH: [&str; 3] = [".PKGINFO", "usr/bin/codewright", "usr/share/man/man1/codewright.1"];

/// Installs, tries and removes each.
pub(super) fn rehearse(release: &Release, report: &mut Report) -> Result<()> {
    for (end, tool, install) in [
        ("deb", "dpkg", debian as fn(&Path, &Path) -> Result<PathBuf>),
        ("rpm", "rpm", fedora),
        ("zst", "zstd", arch),
    ] {
        let found = fs::read_dir(&release.out)?.flatten().map(|entry| entry.path());
        let found = found.into_iter().find(|path| path.extension().is_some_and(|found| found == end));
        let has_tool = Command::new(tool).arg("--version").output().is_ok();
        let Some(package) = found.filter(|_| has_tool) else {
            report.rows.push(format!("| {end} | skipped: nfpm or {tool} is not installed | | |"));
            continue;
        };
        let root = tempfile::tempdir()?;
        report.installed(end, &package, || install(&package, root.path()));
        if end != "zst" {
            report.note(&format!("{end} is removed"), remove(end, root.path()));
        }
    }
    container(release, report)
}

fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("{program} is missing"))?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{program} {}: {}", arguments.join(" "), text.trim());
    Ok(text)
}

/// Installs with an empty list of packages, so what the package needs is only noted.
fn debian(package: &Path, root: &Path) -> Result<PathBuf> {
    for folder in DPKG {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let (root_text, package) = (root.to_string_lossy(), package.to_string_lossy());
    let flags = ["--force-not-root", "--force-depends", "--force-bad-path", "--install"];
    run("dpkg", &[&["--root", &root_text], &flags[..], &[&package]].concat())?;
    Ok(root.join("usr/bin/codewright"))
}

fn fedora(package: &Path, root: &Path) -> Result<PathBuf> {
    let (root_text, package) = (root.to_string_lossy(), package.to_string_lossy());
    run("rpm", &["--root", &root_text, "--install", "--nodeps", "--nosignature", &package])?;
    Ok(root.join("usr/bin/codewright"))
}

/// Unpacks with tar, because pacman is for Arch Linux only.
fn arch(package: &Path, root: &Path) -> Result<PathBuf> {
    run("tar", &["--zstd", "-xf", &package.to_string_lossy(), "-C", &root.to_string_lossy()])?;
    for file in ARCH {
        ensure!(root.join(file).exists() || root.join(format!("{file}.gz")).exists(), "{file} is missing");
    }
    Ok(root.join("usr/bin/codewright"))
}

fn remove(end: &str, root: &Path) -> Result<()> {
    let text = root.to_string_lossy();
    match end {
        "deb" => {
            run("dpkg", &["--root", &text, "--force-not-root", "--force-bad-path", "--remove", "codewright"])?
        }
        _ => run("rpm", &["--root", &text, "--erase", "codewright"])?,
    };
    ensure!(!root.join("usr/bin/codewright").exists(), "the program stays");
    ensure!(!root.join("usr/share/man/man1/codewright.1").exists(), "man pages stay");
    Ok(())
}

/// Unpacks the image as a container engine does, checks every digest, and starts its program.
fn container(release: &Release, report: &mut Report) -> Result<()> {
    let this = target::of_this_machine()?;
    let (Some((processor, _)), Some(program)) = (this.linux, program(release)?) else {
        report.rows.push("| image | skipped: only for Linux | | |".to_owned());
        return Ok(());
    };
    let contents = Contents::of(release, this, &program)?;
    let bytes = image::archive(release, processor, &image::layer(&contents))?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("image.tar");
    fs::write(&file, bytes)?;
    let root = folder.path().join("root");
    report.installed("image", &file, || unpack(&file, &root));
    Ok(())
}

/// The program of the archive for this machine, unpacked next to it.
fn program(release: &Release) -> Result<Option<PathBuf>> {
    let this = target::of_this_machine()?;
    let archive = release.out.join(this.archive(&release.version));
    if this.linux.is_none() || !archive.exists() {
        return Ok(None);
    }
    let folder = release.out.with_extension("program");
    fs::create_dir_all(&folder)?;
    let to = folder.to_string_lossy();
    run("tar", &["-xf", &archive.to_string_lossy(), "-C", &to, "--strip-components", "1"])?;
    Ok(Some(folder.join(this.program())))
}

fn unpack(file: &Path, root: &Path) -> Result<PathBuf> {
    let layout = file.with_extension("layout");
    fs::create_dir_all(&layout)?;
    fs::create_dir_all(root)?;
    run("tar", &["-xf", &file.to_string_lossy(), "-C", &layout.to_string_lossy()])?;
    let blob = |descriptor: &serde_json::Value| -> Result<(PathBuf, Vec<u8>)> {
        let name = descriptor["digest"].as_str().context("a descriptor has a digest")?;
        let name = name.strip_prefix("sha256:").context("the digest is a SHA-256")?;
        let path = layout.join("blobs/sha256").join(name);
        let bytes = fs::read(&path)?;
        ensure!(super::super::digest(&bytes) == name, "{name} has another digest");
        ensure!(descriptor["size"] == bytes.len(), "{name} has another size");
        Ok((path, bytes))
    };
    let index: serde_json::Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let manifest: serde_json::Value = serde_json::from_slice(&blob(&index["manifests"][0])?.1)?;
    let config: serde_json::Value = serde_json::from_slice(&blob(&manifest["config"])?.1)?;
    let (layer, _) = blob(&manifest["layers"][0])?;
    let plain = run("sh", &["-c", "gzip -dc \"$0\" | sha256sum", &layer.to_string_lossy()])?;
    let expected = config["rootfs"]["diff_ids"][0].as_str().unwrap_or_default();
    ensure!(
        plain.split_whitespace().next() == expected.strip_prefix("sha256:"),
        "the layer has another digest"
    );
    run("tar", &["-xzf", &layer.to_string_lossy(), "-C", &root.to_string_lossy()])?;
    let entry = config["config"]["Entrypoint"][0].as_str().context("the image starts nothing")?;
    Ok(root.join(entry.trim_start_matches('/')))
}
