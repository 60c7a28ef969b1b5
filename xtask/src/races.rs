//! Exchanges files and directories with links while tools use them, and counts the bytes that they read or write outside.
//!
//! One thread exchanges a path of the project and a link to another place, without a pause or with short ones. The
//! other calls a tool as the program does: permissions first, and the call only if none leads outside. Whatever the
//! calls return must not contain a byte of the outside files, and these must stay as they are.

mod scene;
mod shared;
mod trial;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use codewright_tools::Opening;

use self::scene::{Exchange, Scene};
use self::trial::{CONTROL, SUBJECTS, Subject, Tally};

/// The default number of exchanges against each tool.
const EXCHANGES: u64 = 1_000_000;
/// The number of calls that each combination of tool, exchanged path and way of opening makes at least.
const MIN_CALLS: u64 = 40;

/// The number of exchanges against the call that has to be caught.
const CONTROL_EXCHANGES: u64 = 60_000;

/// The extent of a run.
struct Plan {
    exchanges: u64,
    min_calls: u64,
}

/// Runs every combination and prints the report.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut plan = Plan { exchanges: EXCHANGES, min_calls: MIN_CALLS };
    let mut only = Vec::new();
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--exchanges" => {
                let text = crate::value(flag, &mut rest)?;
                let number = text.parse();
                plan.exchanges = number.with_context(|| format!("`{flag}` needs a number, not `{text}`"))?;
            }
            "--only" => only.push(crate::value(flag, &mut rest)?.to_owned()),
            other => bail!("`races` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let wanted = |subject: &&Subject| only.is_empty() || only.iter().any(|name| subject.name.contains(name));
    let mut total = Tally::default();
    let control = race(&CONTROL, &Plan { exchanges: CONTROL_EXCHANGES, min_calls: plan.min_calls })?;
    writeln!(std::io::stdout(), "{}", line(CONTROL.name, &control)?)?;
    if control.read_bytes == 0 {
        bail!("a call that uses names after a check was not caught, so the other results prove nothing");
    }
    for subject in SUBJECTS.iter().filter(wanted) {
        let tally = race(subject, &plan)?;
        writeln!(std::io::stdout(), "{}", line(subject.name, &tally)?)?;
        total.add(&tally);
    }
    let outside = total.read_bytes + total.written_bytes;
    writeln!(
        std::io::stdout(),
        "{} exchanges, {} calls, {outside} bytes read or written outside",
        total.exchanges,
        total.calls
    )?;
    Ok(if outside == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(name: &str, tally: &Tally) -> Result<String> {
    let mut line = String::new();
    write!(line, "{name:<12} {:>9} exchanges {:>7} calls", tally.exchanges, tally.calls)?;
    write!(line, " ({} done, {} failed, {} asked)", tally.done, tally.failed, tally.asked)?;
    write!(line, ", {} bytes read, {} bytes written outside", tally.read_bytes, tally.written_bytes)?;
    Ok(line)
}

/// Races one tool with every exchange, opening by the kernel and by hand.
fn race(subject: &Subject, plan: &Plan) -> Result<Tally> {
    let mut total = Tally::default();
    let combinations = Exchange::ALL.len() as u64 * Opening::ALL.len() as u64;
    for opening in Opening::ALL {
        for exchange in Exchange::ALL {
            let scene = Scene::new()?;
            let exchanges = plan.exchanges.div_ceil(combinations);
            let mut exchanger = scene.start(exchange, exchanges, plan.min_calls)?;
            let mut tally = (subject.run)(&scene, opening, &exchanger)?;
            tally.exchanges = exchanger.finish()?;
            tally.written_bytes += scene.changed_bytes()?;
            total.add(&tally);
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of exchanges of the short form.
    const SHORT: Plan = Plan { exchanges: 1200, min_calls: 10 };

    #[test]
    fn no_exchange_makes_a_tool_leave_the_project() {
        let mut all = String::new();
        for subject in SUBJECTS {
            let tally = race(subject, &SHORT).unwrap();
            assert!(tally.done > 0, "{} never succeeds: {tally:?}", subject.name);
            if tally.read_bytes + tally.written_bytes > 0 {
                all += &format!("{}\n", line(subject.name, &tally).unwrap());
            }
        }
        assert_eq!(all, "");
    }

    #[test]
    fn a_call_that_uses_names_after_a_check_is_caught() {
        let tally = race(&CONTROL, &Plan { exchanges: CONTROL_EXCHANGES, min_calls: 10 }).unwrap();
        assert!(tally.read_bytes > 0, "{tally:?}");
    }
}
