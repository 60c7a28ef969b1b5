//! Checks and measurements of the workspace.
//!
//! The checks are tests of this package: which room may look into which, that
//! every room keeps the house's lints, that links and module docs are there.
//! The measurements are `cargo xtask bench`; it runs this program again for
//! the two parts that must not share a process with it, the model and the
//! clock.

mod attacks;
mod bench;
mod clients;
mod contract;
mod crash;
mod fuzz;
mod hang;
mod measure;
mod model;
mod models;
mod pictures;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

const HELP: &str = "\
Checks and measurements of the workspace. The checks are tests: cargo test -p xtask

Usage: cargo xtask COMMAND

Commands:
  attacks [--bin PATH] [--only PART]... [--lanes N] [--short] [--progress] [--slowest]
      Plays the corpus of hostile attempts and harmless uses through the program,
      or only those whose name contains a PART, N at once (default 4). Prints what
      held by kind, and the name of each that did not. Ends with 1 if any did not.
  traced [--bin PATH]
      Runs the program under strace on a hostile directory: `models`, `run`, the
      terminal client and every GET route. Prints every program that was executed.
      Ends with 1 if anything of the repository was.
  bench [--bin PATH] [--against PATH]... [--runs N] [--only NAME]...
      Measures the program against the scripted model: wall, CPU (user and
      system, with all waited-for children) and peak memory (of the largest
      process), as medians with least and most.
      --bin PATH      The program; without it the release build, built first
      --against PATH  Another program with the same command line, run in turn
                      with the first; its figures are also shown as ratios, and
                      `serve` and `store` ask it the same, `tui` starts it and lets it rest
      --runs N        Counted runs a case, after one that is not (default 7)
      --only NAME     version, hi, edit, stream, pipe, size, abort, prompt, serve, decode,
                      snapshot, undo, store, tools or tui; edit, stream and pipe measure hi too, as
                      their figures are beyond its; abort is how long the one waits who stops a
                      turn, phase by phase; serve is what a server costs, at rest and under
                      load; tui is the terminal client on a terminal; decode, snapshot, undo,
                      store and tools are not of the program but of one room: its decoders, its
                      store, a snapshot beside `git status`, random histories of edits that are
                      undone, searches beside `rg` and an edit of a large file
      Ends with 1 if a run failed, never because a limit was exceeded.
  contract [--bin PATH] [CASE]...
      Plays the recorded cases of the original against the program: the model
      says what it said, the user does what was done. Says how much of what was
      recorded comes again, and with cases named what differs in them.
  crash [--bin PATH] [--kills N] [--sessions N] [--seed N]
      Kills the program at random moments while N sessions (default 4) answer,
      N times (default 1000), and holds what is left against what clients were
      told and commands did. Ends with 1 if anything was lost, refused or done
      twice.
  sdk [--bin PATH], tui [--bin PATH]
      Tries the original's own clients, unmodified, against the program: the
      package that other programs use, by both of its clients, and the terminal
      client in a terminal of tmux. Both come from npm when first needed.
  web [--bin PATH]
      Drives the page of the server through a session in a headless Chromium,
      which has to be there; what holds it comes from npm when first needed.
  hang [--bin PATH] [--every N] [--lanes N]
      Runs more than 200 hostile commands through the program, N at once
      (default 8), or only every N-th of them, twice, and looks one second after
      the end of each for what it left and at the memory of the server. Ends with 1 if one hung or left a process.
  fuzz [--bin PATH] [--minutes N] [--lanes N] [--seed N]
      Sends nonsense to every route of the program over a socket, from N lanes
      (default 4) for N minutes (default 20): bodies near what the routes describe,
      halves, pieces, headers and WebSockets that are none. Ends with 1 if the
      program crashed, kept a whole request waiting, failed in a way that is not
      meant, or has grown beyond its bound.
  models FILE | --from-crate
      Replaces the model catalog that is part of the program by FILE, the
      `api.json` of models.dev, plain or gzipped, or by the copy in the newest
      `oxicode-catalog` crate; says what changed.
  pictures [--bin PATH]
      Draws the pictures of docs/tui.md anew: the terminal client on a terminal
      with the scripted model. Nothing changes unless the client has changed.
  scripted [--port P] [--script FILE]
      Serves the scripted model until interrupted; P is 0 for any free port
      (default 18080). FILE is a script in JSON; without it `[[scn:hi]]`,
      `[[scn:stream:BYTES:DELTAS]]` and `[[scn:paced:COUNT:PER_SECOND]]` in a
      prompt pick the answer.
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    match run(&command, &rest) {
        Ok(code) => code,
        Err(error) => {
            // Nobody is left to be told if this cannot be written.
            writeln!(std::io::stderr(), "error: {error:#}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, rest: &[String]) -> Result<ExitCode> {
    match command {
        "attacks" => return attacks::main(rest),
        "traced" => return attacks::traced(rest),
        "bench" => return bench::main(rest),
        "contract" => return contract::main(rest),
        "crash" => return crash::main(rest),
        "sdk" => return clients::sdk(rest),
        "tui" => return clients::tui(rest),
        "web" => return clients::web(rest),
        "fuzz" => return fuzz::main(rest),
        "hang" => return hang::main(rest),
        "scripted" => model::by_hand(rest)?,
        "models" => models::main(rest)?,
        "pictures" => return pictures::main(rest),
        // The parts of a benchmark that run as processes of their own.
        bench::decode::COMMAND => bench::decode::main(rest)?,
        bench::store::COMMAND => bench::store::main(rest)?,
        bench::snapshot::COMMAND => bench::snapshot::main(rest)?,
        bench::tools::COMMAND => bench::tools::main(rest)?,
        measure::COMMAND => measure::main(rest)?,
        model::COMMAND => model::main()?,
        "help" | "-h" | "--help" => std::io::stdout().write_all(HELP.as_bytes())?,
        "" => bail!("a command is missing; `cargo xtask --help` lists them"),
        other => bail!("there is no command `{other}`; `cargo xtask --help` lists them"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The value that follows a flag.
fn value<'a>(flag: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<&'a str> {
    rest.next().map(String::as_str).with_context(|| format!("`{flag}` needs a value"))
}
