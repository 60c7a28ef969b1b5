//! Rehearses a release: makes the artefacts twice, publishes them on servers of this machine, and installs each in an empty
//! home. Damaged and older releases must change nothing.

mod packages;
pub(super) mod place;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use self::place::Place;
use super::archive::{Entry, tar_gz};
use super::{Plan, Release, sign};

/// The version of the release that the rehearsal upgrades to.
const NEXT: &str = "999.0.0";
/// The shells that run the install script.
const SHELLS: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "sh"]];

/// The results of a rehearsal.
struct Report {
    passed: u32,
    failed: Vec<String>,
    rows: Vec<String>,
}

impl Report {
    fn note(&mut self, name: &str, result: Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => self.failed.push(format!("{name}: {error:#}")),
        }
    }

    /// Notes an installation with its times: `install` returns the program.
    fn installed(&mut self, name: &str, artefact: &Path, install: impl FnOnce() -> Result<PathBuf>) {
        let begin = Instant::now();
        let result = install().and_then(|program| {
            let installed = begin.elapsed();
            let home = tempfile::tempdir()?;
            let begin = Instant::now();
            let output = Command::new(&program)
                .arg("demo")
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("HOME", home.path())
                .output()?;
            ensure!(output.status.success(), "the demo failed: {}", String::from_utf8_lossy(&output.stderr));
            let size = fs::metadata(artefact)?.len();
            let mib = size as f64 / 1024.0 / 1024.0;
            let (installed, answered) = (installed.as_secs_f64(), begin.elapsed().as_secs_f64());
            self.rows.push(format!("| {name} | {mib:.1} MiB | {installed:.2} s | {answered:.2} s |"));
            Ok(())
        });
        self.note(name, result);
    }
}

/// Makes, publishes and installs a release, and prints what happened.
pub(super) fn run(root: &Path, mut plan: Plan) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let place = Place::start(folder.path().join("published"))?;
    plan.source = place.address();
    let signer = sign::Signer::new([1; 8], &[42; 32])?;
    plan.key = None;
    plan.out = folder.path().join("first");
    let mut release = super::make(root, &plan)?;
    let digests = fs::read(release.out.join("SHA256SUMS"))?;
    plan.out = folder.path().join("second");
    if plan.programs.is_empty() {
        // The second time the built program is taken as it is.
        plan.programs = vec![crate::bench::target_directory()?.join(super::PROFILE).join("codewright")];
    }
    let second = super::make(root, &plan)?;
    let mut report = Report { passed: 0, failed: Vec::new(), rows: Vec::new() };
    let same = || {
        ensure!(fs::read(second.out.join("SHA256SUMS"))? == digests, "two runs have different bytes");
        Ok(())
    };
    report.note("two runs are equal", same());
    release.key = signer.public_key()?;
    super::recipes::write(&release, &std::collections::BTreeMap::new(), None)?;
    publish(&release, &signer, &place)?;
    script(&release, &place, &mut report)?;
    faults(&release, &place, &mut report)?;
    upgrades(&release, &signer, &place, &mut report)?;
    npm(&release, &place, &mut report)?;
    python(&release, &mut report)?;
    packages::rehearse(&release, &mut report)?;
    let mut out = std::io::stdout();
    writeln!(out, "| installed by | download | installed in | first demo in |\n|---|---|---|---|")?;
    for row in &report.rows {
        writeln!(out, "{row}")?;
    }
    for failure in &report.failed {
        writeln!(out, "FAILED   {failure}")?;
    }
    writeln!(out, "{} of {} steps", report.passed, report.passed as usize + report.failed.len())?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Signs a release and puts it where the install script and `upgrade` look.
fn publish(release: &Release, signer: &sign::Signer, place: &Place) -> Result<()> {
    for name in ["manifest.json", "SHA256SUMS"] {
        let bytes = fs::read(release.out.join(name))?;
        release.write(&format!("{name}.minisig"), signer.sign(&bytes, name)?.as_bytes())?;
    }
    place.publish(&release.out, &release.version)
}

/// The name of the archive for this machine.
fn archive_name(version: &str) -> Result<String> {
    Ok(super::target::of_this_machine()?.archive(version))
}

/// A run of the install script in an empty home. Returns the program.
fn install(release: &Release, shell: &[&str], home: &Path) -> Result<PathBuf> {
    let (first, rest) = shell.split_first().context("no shell")?;
    let triple = super::target::of_this_machine()?.triple;
    let output = Command::new(first)
        .args(rest)
        .arg(release.out.join("install.sh"))
        .args(["--target", triple])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .output()
        .with_context(|| format!("{first} is missing"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(home.join(".local/bin/codewright"))
}

fn script(release: &Release, place: &Place, report: &mut Report) -> Result<()> {
    let archive = place.file(&release.version, &archive_name(&release.version)?);
    for shell in SHELLS {
        if Command::new(shell[0]).arg("--help").output().is_err() {
            report.rows.push(format!("| install.sh with {} | skipped: not installed | | |", shell.join(" ")));
            continue;
        }
        let home = tempfile::tempdir()?;
        let name = format!("install.sh with {}", shell.join(" "));
        report.installed(&name, &archive, || install(release, shell, home.path()));
        let removed = || {
            let script = release.out.join("install.sh");
            let status =
                Command::new("sh").arg(script).arg("--uninstall").env("HOME", home.path()).output()?.status;
            ensure!(status.success(), "it cannot be removed");
            ensure!(fs::read_dir(home.path().join(".local/bin"))?.next().is_none(), "files stay");
            Ok(())
        };
        report.note("install.sh --uninstall", removed());
    }
    let home = tempfile::tempdir()?;
    let dry = || {
        let script = release.out.join("install.sh");
        let status =
            Command::new("sh").arg(script).arg("--dry-run").env("HOME", home.path()).output()?.status;
        ensure!(
            status.success() && fs::read_dir(home.path())?.next().is_none(),
            "a dry run changes something"
        );
        Ok(())
    };
    report.note("install.sh --dry-run", dry());
    Ok(())
}

/// Damaged downloads and unsuitable directories: an error, and the old program still works.
fn faults(release: &Release, place: &Place, report: &mut Report) -> Result<()> {
    let archive = place.file(&release.version, &archive_name(&release.version)?);
    let sums = place.file(&release.version, "SHA256SUMS");
    let (right, right_sums) = (fs::read(&archive)?, fs::read(&sums)?);
    let mut flipped = right.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let damages: [(&str, Vec<u8>, Vec<u8>); 4] = [
        ("a changed archive", flipped, right_sums.clone()),
        ("a truncated archive", right[..middle].to_vec(), right_sums.clone()),
        ("an old list of digests", right.clone(), b"00  codewright-0.0.1-x.tar.gz\n".to_vec()),
        ("no list of digests", right.clone(), Vec::new()),
    ];
    for (name, bytes, list) in damages {
        let home = tempfile::tempdir()?;
        let program = install(release, &["sh"], home.path())?;
        fs::write(&archive, bytes)?;
        fs::write(&sums, list)?;
        let held = || {
            ensure!(install(release, &["sh"], home.path()).is_err(), "it was installed");
            ensure!(
                Command::new(&program).arg("--version").output()?.status.success(),
                "the old program does not run"
            );
            ensure!(fs::read_dir(home.path().join(".local/bin"))?.count() == 2, "files of the attempt stay");
            Ok(())
        };
        report.note(name, held());
        fs::write(&archive, &right)?;
        fs::write(&sums, &right_sums)?;
    }
    let home = tempfile::tempdir()?;
    fs::create_dir_all(home.path().join(".local/bin"))?;
    fs::write(home.path().join(".local/bin/codewright"), "mine")?;
    let kept = || {
        ensure!(install(release, &["sh"], home.path()).is_err(), "it was replaced");
        ensure!(fs::read(home.path().join(".local/bin/codewright"))? == b"mine", "it was changed");
        Ok(())
    };
    report.note("another program of the same name", kept());
    Ok(())
}

/// Upgrades to a next release, back, and not to damaged ones.
fn upgrades(release: &Release, signer: &sign::Signer, place: &Place, report: &mut Report) -> Result<()> {
    let home = tempfile::tempdir()?;
    let program = install(release, &["sh"], home.path())?;
    let upgrade = |arguments: &[&str]| -> Result<String> {
        let output = Command::new(&program)
            .arg("upgrade")
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path())
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8(output.stdout)?)
    };
    let version = || -> Result<String> {
        Ok(String::from_utf8(Command::new(&program).arg("--version").output()?.stdout)?)
    };
    let newest = || {
        ensure!(upgrade(&[])?.contains("is the newest"), "the newest version was replaced");
        Ok(())
    };
    report.note("upgrade of the newest version", newest());
    let script = format!("#!/bin/sh\necho {NEXT}\n");
    let folder = format!("codewright-{NEXT}");
    let bytes = tar_gz(&[Entry::program(format!("{folder}/codewright"), script)], release.time)?;
    let triple = super::target::of_this_machine()?.triple;
    let name = archive_name(NEXT)?;
    let file = serde_json::json!({ "target": triple, "name": name, "size": bytes.len(), "sha256": super::digest(&bytes) });
    let manifest = serde_json::to_vec(&serde_json::json!({ "version": NEXT, "files": [file] }))?;
    let next = tempfile::tempdir()?;
    let write = |archive: &[u8], manifest: &[u8], signer: &sign::Signer| -> Result<()> {
        fs::write(next.path().join(&name), archive)?;
        fs::write(next.path().join("manifest.json"), manifest)?;
        fs::write(next.path().join("manifest.json.minisig"), signer.sign(manifest, NEXT)?)?;
        place.publish(next.path(), NEXT)
    };
    let stranger = sign::Signer::new([2; 8], &[43; 32])?;
    let damaged: [(&str, &[u8], &sign::Signer); 3] = [
        ("upgrade with a wrong key", &bytes, &stranger),
        ("upgrade with a truncated archive", &bytes[..bytes.len() - 9], signer),
        ("upgrade with a changed archive", b"something else", signer),
    ];
    for (name, archive, signer) in damaged {
        write(archive, &manifest, signer)?;
        let held = || {
            ensure!(upgrade(&[]).is_err() && version()?.starts_with(&release.version), "it was installed");
            Ok(())
        };
        report.note(name, held());
    }
    write(&bytes, &manifest, signer)?;
    let there = || {
        upgrade(&[])?;
        ensure!(version()?.starts_with(NEXT), "the version is {}", version()?);
        Ok(())
    };
    report.note("upgrade", there());
    let previous = program.with_file_name("codewright.previous");
    let back = || {
        let output = Command::new(&previous).arg("--version").output()?;
        ensure!(
            String::from_utf8_lossy(&output.stdout).starts_with(&release.version),
            "the old program is not kept"
        );
        Ok(())
    };
    report.note("the old program is kept", back());
    place.publish(&release.out, &release.version)
}

fn npm(release: &Release, place: &Place, report: &mut Report) -> Result<()> {
    if Command::new("npm").arg("--version").output().is_err() {
        report.rows.push("| npm | skipped: not installed | | |".to_owned());
        return Ok(());
    }
    let name = super::target::of_this_machine()?.npm.0;
    place.registry(
        &release.out,
        &release.version,
        &["codewright".to_owned(), format!("codewright-{name}")],
    )?;
    let home = tempfile::tempdir()?;
    let artefact = release.out.join(format!("npm-codewright-{name}-{}.tgz", release.version));
    report.installed("npm", &artefact, || {
        let output = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
            .arg(home.path())
            .arg("codewright")
            .arg("--registry")
            .arg(place.registry_address())
            .env("HOME", home.path())
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let starter = home.path().join("node_modules/.bin/codewright");
        let version = Command::new(starter).arg("--version").output()?;
        ensure!(String::from_utf8_lossy(&version.stdout).starts_with(&release.version), "the starter fails");
        Ok(home.path().join(format!("node_modules/@codewright/{name}/bin/codewright")))
    });
    Ok(())
}

fn python(release: &Release, report: &mut Report) -> Result<()> {
    let wheel = fs::read_dir(&release.out)?.flatten().map(|entry| entry.path());
    let wheel = wheel.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl"));
    let wheel = wheel.context("there is no wheel")?;
    let home = tempfile::tempdir()?;
    report.installed("wheel", &wheel, || {
        let run = |program: &Path, arguments: &[&str]| -> Result<()> {
            let output = Command::new(program).args(arguments).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(())
        };
        let environment = home.path().join("venv");
        run(Path::new("python3"), &["-m", "venv", &environment.to_string_lossy()])?;
        let wheel = wheel.to_string_lossy();
        run(
            &environment.join("bin/pip"),
            &["install", "-q", "--no-index", "--disable-pip-version-check", &wheel],
        )?;
        Ok(environment.join("bin/codewright"))
    });
    Ok(())
}
