//! Builds everything that a release publishes: archives, packages, install scripts, digests, signatures and lists of content.
//!
//! The release workflow and a developer run the same command. All times in archives are the time of the commit, entries are
//! sorted and owners are 0, so two builds of one commit with one compiler give the same bytes.

mod archive;
mod contents;
mod image;
mod npm;
mod published;
mod recipes;
mod rehearse;
mod sbom;
mod sign;
mod system;
mod target;
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use self::contents::Contents;
pub(crate) use self::contents::glibc;
pub(crate) use self::published::Published;
use self::target::Target;

/// The profile of packages.
const PROFILE: &str = "dist";
/// Where releases are published if nothing else is said. A release says it.
const SOURCE: &str = "https://example.invalid/codewright/releases";

/// The options of a run.
pub(crate) struct Plan {
    out: PathBuf,
    source: String,
    targets: Vec<&'static Target>,
    programs: Vec<PathBuf>,
    zig: bool,
    key: Option<PathBuf>,
}

/// What all artefacts share.
pub(crate) struct Release {
    pub(crate) root: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) version: String,
    pub(crate) source: String,
    pub(crate) commit: String,
    /// The time of the commit in seconds since 1970.
    pub(crate) time: u64,
    /// The same time as a date, such as `2026-11-27T15:45:53Z`.
    pub(crate) date: String,
    /// The public key of minisign, or nothing.
    pub(crate) key: String,
}

impl Release {
    /// Writes an artefact.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.out.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// Makes the artefacts, or rehearses a release with them.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let mut plan = Plan {
        out: root.join("target/distribution"),
        source: SOURCE.to_owned(),
        targets: Vec::new(),
        programs: Vec::new(),
        zig: false,
        key: None,
    };
    let mut is_rehearsal = false;
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--out" => plan.out = crate::value(flag, &mut rest)?.into(),
            "--source" => crate::value(flag, &mut rest)?.trim_end_matches('/').clone_into(&mut plan.source),
            "--target" => plan.targets.push(target::named(crate::value(flag, &mut rest)?)?),
            "--bin" => plan.programs.push(crate::value(flag, &mut rest)?.into()),
            "--key" => plan.key = Some(crate::value(flag, &mut rest)?.into()),
            "--zig" => plan.zig = true,
            "--rehearse" => is_rehearsal = true,
            other => bail!("`dist` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    if plan.targets.is_empty() {
        plan.targets.push(target::of_this_machine()?);
    }
    ensure!(
        plan.programs.is_empty() || plan.programs.len() == plan.targets.len(),
        "`--bin` is needed for each `--target`, in the same order"
    );
    if is_rehearsal {
        return rehearse::run(root, plan);
    }
    let release = make(root, &plan)?;
    writeln!(std::io::stdout(), "{}", release.out.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Makes all artefacts in an empty directory.
pub(crate) fn make(root: &Path, plan: &Plan) -> Result<Release> {
    let version = version(root)?;
    check_changelog(root, &version)?;
    let signer = plan.key.as_deref().map(sign::Signer::read).transpose()?;
    let out = plan.out.join(&version);
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let commit = git(root, &["rev-parse", "HEAD"])?;
    let time = git(root, &["log", "-1", "--format=%ct"])?.parse()?;
    let date = git(root, &["log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd"])?;
    let key = signer.as_ref().map(sign::Signer::public_key).transpose()?.unwrap_or_default();
    let release =
        Release { root: root.to_owned(), out, version, source: plan.source.clone(), commit, time, date, key };
    let mut files = BTreeMap::new();
    let mut glibc = None;
    for (at, target) in plan.targets.iter().enumerate() {
        let program = match plan.programs.get(at) {
            Some(program) => program.clone(),
            None => build(root, target, plan.zig)?,
        };
        let contents = Contents::of(&release, target, &program)?;
        glibc = glibc.max(contents.glibc);
        let bytes = match target.archive_end {
            "zip" => archive::zip(&contents.entries())?,
            _ => archive::tar_gz(&contents.entries(), release.time)?,
        };
        let path = release.write(&target.archive(&release.version), &bytes)?;
        files.insert(target.triple, path);
        npm::platform(&release, target, &contents)?;
        wheel::write(&release, target, &contents)?;
        system::write(&release, target, &contents)?;
        image::write(&release, target, &contents)?;
    }
    npm::main(&release, &plan.targets)?;
    sbom::write(&release)?;
    manifest(&release, &files)?;
    recipes::write(&release, &files, glibc)?;
    digests(&release)?;
    if let Some(signer) = signer {
        for name in ["manifest.json", "SHA256SUMS"] {
            let bytes = fs::read(release.out.join(name))?;
            let comment = format!("codewright {} {name}", release.version);
            release.write(&format!("{name}.minisig"), signer.sign(&bytes, &comment)?.as_bytes())?;
        }
    }
    Ok(release)
}

/// Builds the program for a system.
fn build(root: &Path, target: &Target, zig: bool) -> Result<PathBuf> {
    let is_native = target.triple == target::of_this_machine()?.triple && !zig;
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let mut command = Command::new(cargo);
    command.arg(if zig { "zigbuild" } else { "build" });
    command.args(["--locked", "--profile", PROFILE, "--package", "codewright"]).current_dir(root);
    if !is_native {
        let glibc = if zig && target.triple.ends_with("-gnu") { ".2.17" } else { "" };
        command.arg("--target").arg(format!("{}{glibc}", target.triple));
    }
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "the build for {} failed", target.triple);
    let folder = crate::bench::target_directory()?;
    let folder = if is_native { folder } else { folder.join(target.triple) };
    Ok(folder.join(PROFILE).join(target.program()))
}

/// The signed list of archives that `codewright upgrade` reads.
fn manifest(release: &Release, files: &BTreeMap<&str, PathBuf>) -> Result<()> {
    let files = files.iter().map(|(target, path)| {
        let bytes = fs::read(path)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(json!({ "target": target, "name": name, "size": bytes.len(), "sha256": digest(&bytes) }))
    });
    let files: Result<Vec<_>> = files.collect();
    let manifest = json!({ "version": release.version, "commit": release.commit, "files": files? });
    release.write("manifest.json", &serde_json::to_vec_pretty(&manifest)?)?;
    let subject: Vec<_> = manifest["files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| json!({ "name": file["name"], "digest": { "sha256": file["sha256"] } }))
        .collect();
    // The form of in-toto. The workflow adds an attestation that it signs.
    let provenance = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "cargo xtask dist",
                "externalParameters": { "version": release.version },
                "resolvedDependencies": [{ "digest": { "gitCommit": release.commit } }],
            },
            "runDetails": { "builder": { "id": rustc()? } },
        },
    });
    release.write("provenance.json", &serde_json::to_vec_pretty(&provenance)?)?;
    Ok(())
}

/// The digests of all artefacts.
fn digests(release: &Release) -> Result<()> {
    let mut lines = BTreeMap::new();
    for entry in fs::read_dir(&release.out)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            lines.insert(name, digest(&fs::read(entry.path())?));
        }
    }
    let text: String = lines.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    release.write("SHA256SUMS", text.as_bytes())?;
    Ok(())
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = \""));
    Ok(line.and_then(|rest| rest.strip_suffix('"')).context("Cargo.toml has no version")?.to_owned())
}

/// A release is described in the changelog, and nothing is published under a version that it does not name.
fn check_changelog(root: &Path, version: &str) -> Result<()> {
    let text = fs::read_to_string(root.join("CHANGELOG.md"))?;
    let is_named = text.lines().any(|line| {
        line.strip_prefix("## ")
            .is_some_and(|title| title.starts_with(version) || title.starts_with("Unreleased"))
    });
    ensure!(is_named, "CHANGELOG.md has no section for version {version}");
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .env("TZ", "UTC0")
        .current_dir(root)
        .output()
        .context("cannot start git")?;
    ensure!(output.status.success(), "`git {}` failed", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn rustc() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("cannot start rustc")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
