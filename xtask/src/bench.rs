//! Measures the program, and compares it with other programs.
//!
//! Each case runs once to warm the machine and then a number of times with each program in turn, so that a
//! busy minute affects all programs. A run counts only if it did its work: its exit code, its output and its
//! requests to the model are checked.

mod abort;
mod acp;
mod case;
mod compare;
mod confined;
pub(crate) mod decode;
mod lsp;
mod mcp;
mod memory;
mod nodes;
mod page;
mod plugins;
mod prompt;
mod report;
mod sandbox;
mod serve;
mod served;
pub(crate) mod snapshot;
mod spread;
pub(crate) mod store;
pub(crate) mod tools;
mod tui;
mod undo;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use case::{Case, Run};
use report::Measured;
use sandbox::Sandbox;

use crate::measure::{Cost, Sink};
use crate::model::Model;

/// The default number of counted runs.
const RUNS: usize = 7;
/// The largest number of runs.
const RUNS_LIMIT: usize = 1000;
/// The measurements besides the cases.
const PARTS: [Part; 16] = [
    Part { name: abort::NAME, measure: abort::measure },
    Part { name: acp::NAME, measure: acp::measure },
    Part { name: confined::NAME, measure: confined::measure },
    Part { name: decode::NAME, measure: decode::measure },
    Part { name: lsp::NAME, measure: lsp::measure },
    Part { name: mcp::NAME, measure: mcp::measure },
    Part { name: plugins::NAME, measure: plugins::measure },
    Part { name: memory::NAME, measure: memory::measure },
    Part { name: nodes::NAME, measure: nodes::measure },
    Part { name: prompt::NAME, measure: prompt::measure },
    Part { name: serve::NAME, measure: serve::measure },
    Part { name: snapshot::NAME, measure: snapshot::measure },
    Part { name: undo::NAME, measure: undo::measure },
    Part { name: store::NAME, measure: store::measure },
    Part { name: tools::NAME, measure: tools::measure },
    Part { name: tui::NAME, measure: tui::measure },
];
/// The section of the cases in the report.
const CASES: &str = "cases";
/// A program that does nothing.
const NOTHING: &str = "/bin/true";

/// A measurement with its own report.
struct Part {
    name: &'static str,
    /// Measures and returns the lines of the report.
    measure: fn(&Plan) -> Result<String>,
}

/// The arguments of `bench`.
struct Plan {
    program: Option<PathBuf>,
    against: Vec<PathBuf>,
    runs: usize,
    only: Vec<String>,
    /// Whether the report is written to the page.
    is_written: bool,
}

/// A program that is measured.
struct Program {
    name: String,
    path: PathBuf,
    sandbox: Sandbox,
}

/// Measures, prints the report, and fails if a run did not do its work.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut plan = Plan::parse(rest)?;
    let names = std::mem::take(&mut plan.only);
    let is_part = |name: &String| PARTS.iter().any(|part| part.name == name);
    let (parts, cases): (Vec<_>, Vec<_>) = names.iter().cloned().partition(is_part);
    let parts = PARTS.iter().filter(|part| names.is_empty() || parts.iter().any(|name| name == part.name));
    let mut report = Report::default();
    let failures = if names.is_empty() || !cases.is_empty() {
        plan.only = cases;
        measure_cases(&plan, &mut report)?
    } else {
        report.print(&report::head(&[], plan.runs)?)?;
        Vec::new()
    };
    for part in parts {
        report.section(part.name, &(part.measure)(&plan)?)?;
    }
    report.print(&report::foot(&failures)?)?;
    if plan.is_written {
        page::write(&report.sections, &report::head(&[], plan.runs)?)?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Measures the cases and returns the failures.
fn measure_cases(plan: &Plan, report: &mut Report) -> Result<Vec<String>> {
    let cases = case::chosen(&plan.only)?;
    let ours = plan.program()?;
    let mut model = Model::start()?;
    let mut programs = vec![Program::new("ours", &ours, &model.url)?];
    for path in &plan.against {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let name = if plan.against.len() > 1 { format!("{name}#{}", programs.len()) } else { name.into() };
        programs.push(Program::new(&name, path, &model.url)?);
    }
    report.print(&report::head(&programs, plan.runs)?)?;
    report.print(&report::floor(&floor(&model.url, plan.runs)?))?;
    let mut measured = Measured::default();
    for case in cases {
        let runs = run_case(case, &programs, &mut model, plan.runs)?;
        measured.insert(case, runs);
        report.section(CASES, &report::case(case, &programs, &measured))?;
    }
    Ok(measured.failures(&programs))
}

/// The text of a run, printed at once and kept by section.
#[derive(Default)]
struct Report {
    sections: BTreeMap<&'static str, String>,
}

impl Report {
    fn print(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    fn section(&mut self, name: &'static str, text: &str) -> Result<()> {
        self.sections.entry(name).or_default().push_str(text);
        self.print(text)
    }
}

impl Plan {
    fn parse(rest: &[String]) -> Result<Self> {
        let mut plan =
            Self { program: None, against: Vec::new(), runs: RUNS, only: Vec::new(), is_written: false };
        let mut rest = rest.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "--bin" => plan.program = Some(crate::value(flag, &mut rest)?.into()),
                "--against" => plan.against.push(crate::value(flag, &mut rest)?.into()),
                "--only" => plan.only.push(crate::value(flag, &mut rest)?.to_owned()),
                "--write" => plan.is_written = true,
                "--runs" => {
                    let written = crate::value(flag, &mut rest)?;
                    let runs = written.parse().ok().filter(|runs| (1..=RUNS_LIMIT).contains(runs));
                    plan.runs = runs.with_context(|| {
                        format!("`--runs {written}` is not a number from 1 to {RUNS_LIMIT}")
                    })?;
                }
                other => bail!("`bench` has no flag `{other}`"),
            }
        }
        Ok(plan)
    }

    /// Returns the program of `--bin`, or builds it with the `dist` profile.
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
        Ok(Self { name: name.to_owned(), path, sandbox: Sandbox::new(url)? })
    }
}

/// Runs a case and returns the runs of each program, or the error of the first failed run.
fn run_case(
    case: Case,
    programs: &[Program],
    model: &mut Model,
    runs: usize,
) -> Result<Vec<Result<Vec<Run>>>> {
    let mut all: Vec<Result<Vec<Run>>> = programs.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..=case.runs(runs) {
        for (program, done) in programs.iter().zip(&mut all) {
            // A program that failed once is not run again.
            let Ok(counted) = done else { continue };
            match case.run(program, model) {
                Ok(_) if round == 0 => {}
                Ok(run) => counted.push(run),
                Err(error) => *done = Err(error),
            }
        }
    }
    // Requests that arrive late belong to this case, not to the next.
    model.seen()?;
    Ok(all)
}

/// Measures a program that does nothing, whose cost is part of every figure.
fn floor(url: &str, runs: usize) -> Result<Vec<Cost>> {
    let nothing = Program { name: "floor".to_owned(), path: NOTHING.into(), sandbox: Sandbox::new(url)? };
    (0..runs).map(|_| case::measure_program(&nothing, &[], Sink::File)).collect()
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

/// Builds a package with a profile and returns the binary's path, which ends in the package's name.
fn build(package: &str, profile: &str) -> Result<PathBuf> {
    build_with(package, profile, &[])
}

/// Does the same with more variables.
pub(crate) fn build_with(package: &str, profile: &str, variables: &[(&str, &OsStr)]) -> Result<PathBuf> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let status = Command::new(cargo)
        .args(["build", "--profile", profile, "--package", package])
        .envs(variables.iter().copied())
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the build of `{package}` failed");
    }
    Ok(target_directory()?.join(profile).join(package))
}

/// The directory in which cargo builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let metadata = Command::new(cargo)
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(PathBuf::from(target))
}
