//! Checks and measurements of the workspace.
//!
//! The checks are tests of this package: the layers of the crates, lints, links and module docs. The commands
//! run long tests and measurements. `bench` starts this program again for the scripted model and for
//! measuring, because both need their own process.

mod attacks;
mod bench;
#[cfg(target_os = "linux")]
mod breakout;
mod clients;
mod contract;
mod crash;
mod dist;
mod ecosystem;
mod edits;
mod first_hour;
mod first_run;
mod fleet;
mod fuzz;
mod hang;
mod local_model;
mod lsp;
mod mcp;
mod measure;
mod model;
mod models;
mod package;
mod pictures;
mod plugins;
mod races;
mod site;
mod size;
mod transcripts;
mod web;
mod work;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

const HELP: &str = "\
Checks and measurements of the workspace. The checks are tests: cargo test -p xtask

Usage: cargo xtask COMMAND

Without --bin a command builds the program with the `release` profile, `bench` with the `dist` profile.

Commands:
  attacks [--bin PATH] [--only PART]... [--lanes N] [--short] [--unprotected] [--progress] [--slowest]
      Play the corpus of hostile and harmless cases, or only those whose name contains
      a PART, N at once (default 4). Print the results by kind and the name of each
      failed case. With --unprotected, play the attacks without sandbox, rules and trust, and
      report those without an effect. Exit with 1 if a case failed.
  traced [--bin PATH]
      Run the program under strace on a hostile directory: `models`, `run`, the
      terminal client and every GET route. Print every program that was executed.
      Exit with 1 if a program of the repository was executed.
  bench [--bin PATH] [--against PATH]... [--runs N] [--only NAME]... [--write]
      Measure the program with the scripted model: wall time, CPU (user and system,
      with all waited-for children) and peak memory (of the largest process), as
      medians with the range.
      --bin PATH      The program
      --against PATH  Another program with the same command line, run in turn with the
                      first. Its figures are also shown as ratios. `serve` and `store`
                      send it the same requests, `tui` only starts it
      --runs N        Counted runs of each case, after a warm-up run (default 7)
      --only NAME     version, hi, edit, stream, pipe, size, abort, lsp, mcp, plugins, prompt, serve, decode,
                      snapshot, undo, store, sandbox, tools or tui. edit, stream and pipe measure
                      hi too, because their figures are differences to it. abort measures
                      the time until a turn is aborted; serve a server, idle and under
                      load; tui the terminal client. decode, snapshot, undo, store and
                      tools measure one crate instead of the whole program
      --write         Replace the measured sections of docs/measurements.md
      Exit with 1 if a run failed, but not if a limit was exceeded.
  contract [--bin PATH] [CASE]...
      Replay the recorded OpenCode sessions: the model repeats its answers, the user's
      actions are repeated. Print how many of the recorded events and messages match,
      and with a CASE every difference (`!`: in shape too).
  crash [--bin PATH] [--kills N] [--sessions N] [--seed N]
      Kill the program N times (default 1000) at random moments while N sessions
      (default 4) answer, and compare its state with the record of the clients and with
      the effects of commands. Exit with 1 if anything was lost, refused or run twice.
  sdk [--bin PATH], tui [--bin PATH]
      Test the program with OpenCode's own clients, unmodified: its npm package, and
      its terminal client in tmux. Both are installed by npm when first needed.
  acp [--bin PATH]
      Drive `codewright acp` as an editor, with the official TypeScript and Rust clients of
      the Agent Client Protocol: once with a model, and once with another process of the
      program as the agent. npm installs the TypeScript client when first needed.
  web [--bin PATH] [--only TEXT] [--firefox] [--bench | --pictures]
      Use the web app as a user does, in headless Chromium and, if it is installed, in Firefox, or
      measure it, or draw the pictures of its guide. npm installs the library that controls the browsers.
  hang [--bin PATH] [--every N] [--lanes N]
      Run more than 200 hostile commands through the program, twice, N at once (default
      8), or only every N-th of them. One second after each, look for processes that it
      left, and measure the memory of the server. Exit with 1 if a command hung or left
      a process.
  lsp [--bin PATH] [--path DIRECTORY]... [--only ID]... [--install]
      Let installed language servers (typescript, pyright, clangd, gopls, rust) report an
      error after an edit. They are searched in the directories and then on PATH; missing
      ones are skipped. With --install the program installs those that are npm packages.
      Print the number of servers that did. Exit with 1 if one did not.
  fleet [--bin PATH] [--nodes N] [--sessions N] [--faults N] [--seed N] [--networks] [--thinking SECONDS]
        [--unfenced]
      Break N servers (default 3) on one private PostgreSQL N times (default 40) while N
      sessions (default 24) work: kills, pauses, ends, drains, stalled connections to the
      database and between servers, crashes of the database. Compare the log with the
      record of the clients and the effects of commands. With --networks (root, `ip` and
      `cc`) each server and the database are in a network namespace of their own, which
      loses packets; the disk of the database gets slow, and clocks jump. Clients pause
      up to SECONDS between two prompts. Exit with 1 if a prompt or an
      event was lost, an effect doubled or a session stuck. With --unfenced servers write
      with leases that they have lost, and are only paused: exit with 1 if that is not found.
  first-hour [--bin PATH] [--only PART] [--progress]
      Play the first hour of a new user in 80 steps: installation by the script, keys, first prompts,
      the terminal client on a pseudo-terminal, and the web app in headless Chromium. A PART is
      install, line, screen or browser. Print the failed steps and `n of 80`. Exit with 1 if a step failed.
  fuzz [--bin PATH] [--minutes N] [--lanes N] [--seed N]
      Send random requests to every route of the program from N threads (default 4) for
      N minutes (default 20): bodies close to the schemas, incomplete requests, pieces,
      invalid headers and WebSockets. Exit with 1 if the program crashed, did not answer
      a complete request, failed unexpectedly, or uses too much memory.
  local-model [--bin PATH]
      Drive the program with llama.cpp's own server and a small real model over Chat Completions,
      Responses and Anthropic Messages. pip installs both below the temporary directory; without
      a network the command is skipped. Print each case. Exit with 1 if a case failed.
  transcripts [--count N] [--lanes N] [--seed N]
      Replay N random stored conversations (default 100000) to models of all protocols, and check
      every request with the rules of the scripted servers. Exit with 1 if one would be refused.
  mcp [--bin PATH]
      Drive the program with real MCP servers over all transports: the official ones, the
      examples of the TypeScript SDK, and one in Python. npm and pip install them below
      the temporary directory. Print each case. Exit with 1 if a case failed.
  models FILE | --from-crate
      Replace the embedded model catalog by FILE, the `api.json` of models.dev, plain or
      gzipped, or by the copy in the newest `oxicode-catalog` crate. Print the changes.
  package
      Build the program as packages have it: with the `dist` profile, and with the
      functions that usual runs use in front. Builds twice, and needs valgrind.
  pictures [--bin PATH]
      Draw the pictures of docs/tui.md again: the terminal client with the scripted
      model. The files change only if the client has changed.
  dist [--target TARGET]... [--bin PATH]... [--zig] [--source URL] [--key FILE] [--out DIRECTORY] [--rehearse]
      Build what a release publishes: archives, npm packages, wheels, packages of Linux systems (needs
      nfpm), install script, recipes, digests, list of libraries, and signatures with the minisign
      key in FILE. With --zig the program is built by cargo-zigbuild for glibc 2.17 or musl. With
      --rehearse everything is made twice, published on servers of this machine, installed in empty
      homes and upgraded; damaged releases must change nothing. Exit with 1 if a step failed.
  first-run --bin PATH [--root DIRECTORY] [--glibc 2.N]
      Start the program for the first time in an empty root file system: without network, git, certificates, home,
      devices; as root and as a user without a name; behind a proxy with a certificate of its own. Needs unshare and
      busybox. With --root it is copied into that root file system, such as one of an older Debian; with --glibc it
      must not need a newer one. Print each step and n of n. Exit with 1 if one failed.
  site [--out DIRECTORY] [--root DIRECTORY]
      Build the documentation as static pages (default: target/site) from docs/, README.md and
      ARCHITECTURE.md, without a network. Exit with 1, and write nothing, if a link, an anchor,
      a snippet of configuration or a command line is broken, or nothing links to a page.
  size --bin PATH
      Print what a program with symbols consists of: sections, code by crate, embedded files.
      Needs readelf.
  ecosystem [--only NAME] [--also NAME@VERSION]... [--bin PATH]
      Live a day with each of twenty-one published packages of npm, unmodified, on OpenCode 1.18.33
      and on this program, or with other plugins. Print the points of both for each package, and
      what is missing. Needs npm. Exit with 1 if a point is missing that is not safer on purpose.

  edits [FILE|DIRECTORY]... [--verbose]
      Make recorded edits of models again with the edit tool (default: the sample in xtask/fixtures/edits). Print how many
      give the same file, and what happens to those that failed. Exit with 1 if a success differs, an ambiguous edit is
      made, text is replaced that was not quoted, or a block is refused that differs only in indentation.
  plugins [--bin PATH]
      Run published plugins of npm, unmodified, each alone and all together, and check the
      types of fixture plugins against the official package. Needs npm and a runtime for
      plugins. Print each plugin and n of n. Exit with 1 if one failed.
  races [--exchanges N] [--only TOOL]...
      Exchange a directory, a file and the parent of a project with links to outside
      directories, N times (default 1000000) against each file tool and against undo.
      Print the results by tool. Exit with 1 if a call read or wrote a byte outside.
  sandbox [--bin PATH] [--mode MODE] [--only PART] [--every N]
      Let a scripted, malicious model try to leave the sandbox with hundreds of attempts:
      writes, secrets, connections, control files, system calls, processes. After each
      one, compare the state outside. Without MODE: `workspace` and `read-only`. Exit
      with 1 if an attempt had an effect.
  work [--bin PATH] [--mechanism NAME] [--only PART]...
      Run ordinary work in the sandbox as commands of a scripted model: builds and tests
      of small projects, git, debuggers, a browser. NAME is `bubblewrap` or `landlock`
      (default: both). Rows whose programs are missing are skipped. Exit with 1 if a row
      failed or needed permission.
  scripted [--port P] [--script FILE]
      Serve the scripted model until interrupted. P is 0 for any free port (default
      18080). FILE is a script in JSON; without it `[[scn:hi]]`,
      `[[scn:stream:BYTES:DELTAS]]` and `[[scn:paced:COUNT:PER_SECOND]]` in a prompt
      choose the answer.
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    match run(&command, &rest) {
        Ok(code) => code,
        Err(error) => {
            // There is no way to report that stderr cannot be written.
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
        "dist" => return dist::main(rest),
        "acp" => return clients::acp(rest),
        "sdk" => return clients::sdk(rest),
        "tui" => return clients::tui(rest),
        "web" => return web::main(rest),
        "first-run" => return first_run::main(rest),
        "fleet" => return fleet::main(rest),
        "first-hour" => return first_hour::main(rest),
        "fuzz" => return fuzz::main(rest),
        "transcripts" => return transcripts::main(rest),
        "hang" => return hang::main(rest),
        "local-model" => return local_model::main(rest),
        "mcp" => return mcp::main(rest),
        "edits" => return edits::main(rest),
        "ecosystem" => return ecosystem::main(rest),
        "plugins" => return plugins::main(rest),
        "lsp" => return lsp::main(rest),
        #[cfg(target_os = "linux")]
        "sandbox" => return breakout::main(rest),
        "work" => return work::main(rest),
        "scripted" => model::by_hand(rest)?,
        "models" => models::main(rest)?,
        "package" => return package::main(rest),
        "pictures" => return pictures::main(rest),
        "races" => return races::main(rest),
        "site" => return site::main(rest),
        "size" => return size::main(rest),
        // Parts of a benchmark that need their own process.
        bench::decode::COMMAND => bench::decode::main(rest)?,
        bench::store::COMMAND => bench::store::main(rest)?,
        bench::snapshot::COMMAND => bench::snapshot::main(rest)?,
        bench::tools::COMMAND => bench::tools::main(rest)?,
        measure::COMMAND => measure::main(rest)?,
        model::COMMAND => model::main()?,
        "help" | "-h" | "--help" => std::io::stdout().write_all(HELP.as_bytes())?,
        "" => bail!("a command is missing; `cargo xtask --help` lists them"),
        other => bail!("unknown command `{other}`; `cargo xtask --help` lists them"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the value after a flag.
fn value<'a>(flag: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<&'a str> {
    rest.next().map(String::as_str).with_context(|| format!("`{flag}` needs a value"))
}
