//! What the program costs, and what another one costs beside it.
//!
//! A case is run once to warm the machine and then so many times by each
//! program in turn, so that a busy minute falls on all of them. A run counts
//! only if it did its work: its exit code, the answer in its output and the
//! requests the model got are looked at each time.

mod abort;
mod beside;
mod case;
pub(crate) mod decode;
mod place;
mod prompt;
mod report;
mod serve;
mod served;
pub(crate) mod snapshot;
mod spread;
pub(crate) mod store;
pub(crate) mod tools;
mod tui;
mod undo;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use case::{Case, Run};
use place::Place;
use report::Measured;

use crate::measure::{Cost, Sink};
use crate::model::Model;

/// Counted runs of each case unless said otherwise.
const RUNS: usize = 7;
/// More runs say no more.
const RUNS_LIMIT: usize = 1000;
/// What is measured of a room and not of the whole program.
const PARTS: [Part; 9] = [
    Part { name: abort::NAME, measured: abort::measured },
    Part { name: decode::NAME, measured: decode::measured },
    Part { name: prompt::NAME, measured: prompt::measured },
    Part { name: serve::NAME, measured: serve::measured },
    Part { name: snapshot::NAME, measured: snapshot::measured },
    Part { name: undo::NAME, measured: undo::measured },
    Part { name: store::NAME, measured: store::measured },
    Part { name: tools::NAME, measured: tools::measured },
    Part { name: tui::NAME, measured: tui::measured },
];
/// A program that does nothing.
const NOTHING: &str = "/bin/true";

struct Part {
    name: &'static str,
    /// Measures as wanted, some parts beside other programs; the lines to be shown.
    measured: fn(&Wanted) -> Result<String>,
}

/// What is to be measured.
struct Wanted {
    program: Option<PathBuf>,
    against: Vec<PathBuf>,
    runs: usize,
    only: Vec<String>,
}

/// A program that is measured.
struct Program {
    name: String,
    path: PathBuf,
    place: Place,
}

/// Measures, prints, and says whether every run did its work.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut wanted = Wanted::parse(rest)?;
    let named = std::mem::take(&mut wanted.only);
    let (parts, cases): (Vec<_>, Vec<_>) =
        named.iter().cloned().partition(|name| PARTS.iter().any(|part| part.name == name));
    let parts = PARTS.iter().filter(|part| named.is_empty() || parts.iter().any(|name| name == part.name));
    if !named.is_empty() && cases.is_empty() {
        print(&report::head(&[], wanted.runs)?)?;
        for part in parts {
            print(&(part.measured)(&wanted)?)?;
        }
        print(&report::foot(&[])?)?;
        return Ok(ExitCode::SUCCESS);
    }
    wanted.only = cases;
    let cases = case::chosen(&wanted.only)?;
    let ours = wanted.program()?;
    let mut model = Model::start()?;
    let mut programs = vec![Program::new("ours", &ours, &model.url)?];
    for path in &wanted.against {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let name = if wanted.against.len() > 1 { format!("{name}#{}", programs.len()) } else { name.into() };
        programs.push(Program::new(&name, path, &model.url)?);
    }
    print(&report::head(&programs, wanted.runs)?)?;
    print(&report::floor(&floor(&model.url, wanted.runs)?))?;
    let mut measured = Measured::default();
    for case in cases {
        let runs = run_case(case, &programs, &mut model, wanted.runs)?;
        measured.insert(case, runs);
        print(&report::case(case, &programs, &measured))?;
    }
    for part in parts {
        print(&(part.measured)(&wanted)?)?;
    }
    let failures = measured.failures(&programs);
    print(&report::foot(&failures)?)?;
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Wanted {
    fn parse(rest: &[String]) -> Result<Self> {
        let mut wanted = Self { program: None, against: Vec::new(), runs: RUNS, only: Vec::new() };
        let mut rest = rest.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "--bin" => wanted.program = Some(crate::value(flag, &mut rest)?.into()),
                "--against" => wanted.against.push(crate::value(flag, &mut rest)?.into()),
                "--only" => wanted.only.push(crate::value(flag, &mut rest)?.to_owned()),
                "--runs" => {
                    let written = crate::value(flag, &mut rest)?;
                    let runs = written.parse().ok().filter(|runs| (1..=RUNS_LIMIT).contains(runs));
                    wanted.runs = runs.with_context(|| {
                        format!("`--runs {written}` is not a number from 1 to {RUNS_LIMIT}")
                    })?;
                }
                other => bail!("`bench` has no flag `{other}`"),
            }
        }
        Ok(wanted)
    }

    /// The program that is measured, built with the `dist` profile unless another is named.
    fn program(&self) -> Result<PathBuf> {
        match &self.program {
            Some(path) => {
                Ok(path.canonicalize().with_context(|| format!("there is no `{}`", path.display()))?)
            }
            None => build_dist(),
        }
    }
}

impl Program {
    fn new(name: &str, path: &Path, url: &str) -> Result<Self> {
        let path = path.canonicalize().with_context(|| format!("there is no `{}`", path.display()))?;
        Ok(Self { name: name.to_owned(), path, place: Place::new(url)? })
    }
}

/// The runs of a case by each program, or why it could not be measured.
fn run_case(
    case: Case,
    programs: &[Program],
    model: &mut Model,
    runs: usize,
) -> Result<Vec<Result<Vec<Run>>>> {
    let mut all: Vec<Result<Vec<Run>>> = programs.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..=case.runs(runs) {
        for (program, done) in programs.iter().zip(&mut all) {
            // A program that failed once is not asked again.
            let Ok(counted) = done else { continue };
            match case.run(program, model) {
                Ok(_) if round == 0 => {}
                Ok(run) => counted.push(run),
                Err(error) => *done = Err(error),
            }
        }
    }
    // What is still on its way belongs to this case, not to the next.
    model.seen()?;
    Ok(all)
}

/// What a program that does nothing costs, so that the figures can be read against it.
fn floor(url: &str, runs: usize) -> Result<Vec<Cost>> {
    let nothing = Program { name: "floor".to_owned(), path: NOTHING.into(), place: Place::new(url)? };
    (0..runs).map(|_| case::measured(&nothing, &[], Sink::File)).collect()
}

/// Builds the program with the `release` profile and returns its path.
pub(crate) fn build_release() -> Result<PathBuf> {
    build("codewright", "release")
}

/// Builds the program with the `dist` profile, as packages do, and returns its path.
fn build_dist() -> Result<PathBuf> {
    build("codewright", "dist")
}

/// Builds `xtask` for measurements inside its own process and returns its path.
fn build_measuring() -> Result<PathBuf> {
    build("xtask", "measure")
}

/// Builds a package with a profile and returns the path of its binary, which has the package's name.
fn build(package: &str, profile: &str) -> Result<PathBuf> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let status = Command::new(cargo)
        .args(["build", "--profile", profile, "--package", package])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the build of `{package}` failed");
    }
    let metadata = Command::new(cargo)
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(Path::new(target).join(profile).join(package))
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
