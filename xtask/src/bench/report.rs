//! Formats the figures: a block for each case, with a line for each figure and program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::Result;

use super::Program;
use super::case::{Case, Run};
use super::spread::Spread;
use crate::measure::Cost;
use crate::model::FLOOD;

const MIB: f64 = 1024.0 * 1024.0;

/// Adds the line of a figure, with its limit if it has one.
pub(super) fn row(text: &mut String, name: &str, unit: &str, value: f64, limit: Option<f64>) -> Result<()> {
    let verdict = match limit {
        Some(limit) if value <= limit => format!("limit {limit} {unit} ok"),
        Some(limit) => format!("limit {limit} {unit} OVER"),
        None => String::new(),
    };
    let line = format!("  {name:<52} {value:>8.2} {unit:<6} {verdict}");
    Ok(writeln!(text, "{}", line.trim_end())?)
}

/// The measured runs by case and program.
#[derive(Default)]
pub(super) struct Measured {
    cases: BTreeMap<Case, Vec<Result<Vec<Run>>>>,
}

/// A figure of a case.
struct Figure {
    name: &'static str,
    unit: &'static str,
    decimals: usize,
    /// The upper limit for the first program.
    limit: Option<f64>,
    of: fn(&Measured, Case, usize) -> Vec<f64>,
}

impl Measured {
    pub(super) fn insert(&mut self, case: Case, runs: Vec<Result<Vec<Run>>>) {
        self.cases.insert(case, runs);
    }

    /// Returns the failures of all programs.
    pub(super) fn failures(&self, programs: &[Program]) -> Vec<String> {
        let mut failures = Vec::new();
        for (case, runs) in &self.cases {
            for (program, runs) in programs.iter().zip(runs) {
                if let Err(error) = runs {
                    failures.push(format!(
                        "{} {}: {}\n{error}",
                        program.name,
                        case.name(),
                        error.root_cause()
                    ));
                }
            }
        }
        failures
    }

    fn runs(&self, case: Case, program: usize) -> &[Run] {
        let runs = self.cases.get(&case).and_then(|programs| programs.get(program));
        runs.and_then(|runs| runs.as_deref().ok()).unwrap_or_default()
    }

    /// Returns a number for each run.
    fn each(&self, case: Case, program: usize, of: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs(case, program).iter().map(of).collect()
    }

    /// Returns the CPU milliseconds of each run in addition to those of "hi".
    fn over_hi(&self, case: Case, program: usize) -> Vec<f64> {
        let Some(hi) = Spread::of(self.each(Case::Hi, program, cpu_ms)) else { return Vec::new() };
        self.each(case, program, |run| cpu_ms(run) - hi.median)
    }
}

fn cpu_ms(run: &Run) -> f64 {
    run.cost.cpu_us as f64 / 1e3
}

fn a_delta_us(ms: f64) -> f64 {
    ms * 1e3 / FLOOD.deltas as f64
}

const CPU: Figure = Figure {
    name: "cpu",
    unit: "ms",
    decimals: 1,
    limit: None,
    of: |all, case, program| all.each(case, program, cpu_ms),
};
const PEAK: Figure = Figure {
    name: "peak memory",
    unit: "MiB",
    decimals: 1,
    limit: None,
    of: |all, case, program| all.each(case, program, |run| run.cost.peak_kib as f64 / 1024.0),
};
const WALL: Figure = Figure {
    name: "wall",
    unit: "ms",
    decimals: 1,
    limit: None,
    of: |all, case, program| all.each(case, program, |run| run.cost.wall_ns as f64 / 1e6),
};
const FIRST: Figure = Figure {
    name: "first request",
    unit: "ms",
    decimals: 1,
    limit: None,
    of: |all, case, program| {
        let runs = all.runs(case, program).iter();
        runs.filter_map(Run::first_request_ns).map(|ns| ns as f64 / 1e6).collect()
    },
};
const REQUESTS: Figure = Figure {
    name: "model requests",
    unit: "",
    decimals: 0,
    limit: None,
    of: |all, case, program| {
        all.each(case, program, |run| (run.seen.main_ns.len() + run.seen.side_ns.len()) as f64)
    },
};
const OVER_HI: Figure =
    Figure { name: "cpu over hi", unit: "ms", decimals: 1, limit: None, of: Measured::over_hi };
const DELTA: Figure = Figure {
    name: "cpu per delta, over hi",
    unit: "us",
    decimals: 2,
    limit: None,
    of: |all, case, program| all.over_hi(case, program).into_iter().map(a_delta_us).collect(),
};
const DELTA_TOTAL: Figure = Figure {
    name: "cpu per delta, total",
    unit: "us",
    decimals: 2,
    limit: None,
    of: |all, case, program| all.each(case, program, |run| a_delta_us(cpu_ms(run))),
};

impl Figure {
    /// Sets the upper limit.
    const fn at_most(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self
    }

    fn format(&self, value: f64) -> String {
        format!("{value:.*}", self.decimals)
    }

    /// Formats a line for each program, with the ratio to the first.
    fn lines(&self, case: Case, programs: &[Program], all: &Measured) -> String {
        let mut text = String::new();
        let ours = Spread::of((self.of)(all, case, 0));
        for (at, program) in programs.iter().enumerate() {
            let Some(spread) = Spread::of((self.of)(all, case, at)) else { continue };
            let name = if at == 0 { self.name } else { "" };
            let median = self.format(spread.median);
            let mut line = format!("  {name:<21} {:<12} {median:>9} {:<3}", program.name, self.unit);
            let range = format!("({} .. {})", self.format(spread.least), self.format(spread.most));
            line.push_str(&format!(" {range:<23}"));
            match (at, self.limit, ours) {
                (0, Some(limit), _) => {
                    let mark = if spread.median <= limit { "ok" } else { "OVER" };
                    line.push_str(&format!(" limit {limit} {} {mark}", self.unit));
                }
                // A difference that is lost in the noise has no meaningful ratio.
                (1.., _, Some(ours)) if ours.median > 0.0 && spread.median > 0.0 => {
                    line.push_str(&format!(" {:.1} x ours", spread.median / ours.median));
                }
                _ => {}
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn figures(case: Case) -> Vec<Figure> {
    match case {
        Case::Size => Vec::new(),
        Case::Version => vec![CPU.at_most(4.0), PEAK.at_most(12.0), WALL],
        Case::Hi => vec![CPU.at_most(45.0), PEAK.at_most(48.0), FIRST.at_most(100.0), WALL, REQUESTS],
        Case::Edit => vec![OVER_HI.at_most(50.0), CPU, PEAK, WALL, REQUESTS],
        Case::Stream | Case::Pipe => vec![DELTA.at_most(10.0), DELTA_TOTAL, PEAK.at_most(64.0), CPU, WALL],
    }
}

/// Formats the machine and the programs.
pub(super) fn head(programs: &[Program], runs: usize) -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut text = format!(
        "machine  {cores} cores, kernel {}, load {}\n",
        kernel.trim(),
        load().as_deref().unwrap_or("?")
    );
    for program in programs {
        writeln!(text, "{:<8} {}", program.name, program.path.display())?;
    }
    writeln!(text, "medians of {runs} runs (least .. most), the programs in turn, after one warm-up each")?;
    Ok(text)
}

/// Formats the cost of an empty program, which includes the memory of the measuring process.
pub(super) fn floor(costs: &[Cost]) -> String {
    let of =
        |value: fn(&Cost) -> f64| Spread::of(costs.iter().map(value)).map_or(0.0, |spread| spread.median);
    let cpu_ms = of(|cost| cost.cpu_us as f64 / 1e3);
    let peak_mib = of(|cost| cost.peak_kib as f64 / 1024.0);
    format!("an empty program measures {cpu_ms:.1} ms of CPU and {peak_mib:.1} MiB\n")
}

/// Formats the figures of a case.
pub(super) fn case(case: Case, programs: &[Program], all: &Measured) -> String {
    let mut text = format!("\n{}: {}\n", case.name(), case.about());
    if case == Case::Size {
        text.push_str(&sizes(programs));
    }
    for figure in figures(case) {
        text.push_str(&figure.lines(case, programs, all));
    }
    for (at, program) in programs.iter().enumerate() {
        if all.cases.get(&case).is_some_and(|runs| runs.get(at).is_some_and(Result::is_err)) {
            text.push_str(&format!("  {:<21} {:<12} FAILED, see below\n", "", program.name));
        }
    }
    text
}

/// Formats the load after the runs and the failures.
pub(super) fn foot(failures: &[String]) -> Result<String> {
    let mut text = format!("\nload at the end {}\n", load().as_deref().unwrap_or("?"));
    for failure in failures {
        writeln!(text, "\nFAILED {failure}")?;
    }
    Ok(text)
}

fn sizes(programs: &[Program]) -> String {
    const LIMIT_MIB: f64 = 30.0;
    let size = |program: &Program| fs::metadata(&program.path).map_or(0.0, |file| file.len() as f64 / MIB);
    let mut text = String::new();
    let ours = programs.first().map_or(0.0, size);
    for (at, program) in programs.iter().enumerate() {
        let mib = size(program);
        let verdict = match at {
            0 => format!("limit {LIMIT_MIB} MiB {}", if mib <= LIMIT_MIB { "ok" } else { "OVER" }),
            _ => format!("{:.1} x ours", mib / ours),
        };
        let name = if at == 0 { "size" } else { "" };
        text.push_str(&format!(
            "  {name:<21} {:<12} {mib:>9.1} {:<3} {:<23} {verdict}\n",
            program.name, "MiB", ""
        ));
    }
    text
}

fn load() -> Option<String> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    Some(load.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}
